"""Tests of a federation of eight local nodes with every kind of fault, and of the data that the server stores.

After the first round, node 3 is killed, and the table of node 5 is replaced with another table. Node 6 rejects the run,
because its largest permitted epsilon is smaller. In the first round, the table of node 7 cannot be read, and the error
names its file. The users, the rare words and the file names of all tables contain a planted word, which no file of the
server may contain.
"""

import os
import signal
import time
from pathlib import Path

import polars as pl
import pytest

import voxpop as vp

pytest.importorskip("flwr", reason="flwr is not installed: pip install voxpop-flower")

from benchmarks.support.federation import Federation, app_with
from benchmarks.support.forks import WAITS

pytestmark = pytest.mark.slow

NODES = 8
KILLED, CHANGED, STRICT, BROKEN = 3, 5, 6, 7
PLANTED = "quokka"
POLLS = "FLWR_SUPEREXEC_TASK_POLL_INTERVAL"
COMMON = ["sun", "star", "moon"]
SERVER = '''
"""The server of voxpop; each reply is written to a file as it came, with its error, if it has one."""

import time
from pathlib import Path

from flwr.serverapp import ServerApp

from voxpop_flower.serving import serve

app = ServerApp()


class Heard:
    def __init__(self, grid, path):
        self.grid, self.path = grid, path

    def get_node_ids(self):
        return self.grid.get_node_ids()

    def send_and_receive(self, messages, *, timeout):
        while messages[0].metadata.group_id == "2" and not Path(self.path + ".go").exists():
            time.sleep(0.2)
        answers = list(self.grid.send_and_receive(messages, timeout=timeout))
        with open(self.path, "a") as file:
            for each in answers:
                said = each.error if each.has_error() else dict(each.content)
                file.write(f"{each.metadata} {each.has_error()} {said}\\n")
        return answers


@app.main()
def main(grid, context):
    serve(Heard(grid, context.run_config["heard"]), context)
'''


def table_of(path: Path, number: int, words: list[str]) -> None:
    """Write a table of 120 users. One tenth of the users have a planted word."""
    users = [f"{PLANTED}-user-{number}-{user}" for user in range(120)]
    what = [words[user % len(words)] if user % 10 else f"{PLANTED}{user}" for user in range(120)]
    fresh = path.with_suffix(".new")
    pl.DataFrame({"who": users, "what": what}).write_csv(fresh)
    fresh.rename(path)


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Run the federation, and return its folder and the log of the run."""
    folder = tmp_path_factory.mktemp("eight")
    server, nodes = folder / "server", folder / "nodes"
    server.mkdir()
    nodes.mkdir()
    federation = Federation(server, {POLLS: "5"}, database=str(server / "link.db"), **{WAITS: "0.2", POLLS: "2"})
    try:
        processes = []
        for number in range(NODES):
            state, path = nodes / f"state{number}", nodes / f"{PLANTED}{number}.csv"
            state.mkdir()
            table_of(path, number, COMMON)
            if number == BROKEN:
                path.write_text(f"who,what\n{PLANTED},{PLANTED},{PLANTED}\n")
            bounds = f'state="{state}" total-epsilon=2.0 total-delta=1e-5'
            bounds += " max-epsilon=0.5" if number == STRICT else ""
            processes.append(federation.node(f"node{number}", f'source="{path}" user="who" items="what" {bounds}'))
        ledger = vp.Ledger(server / "team.ledger")
        ledger.open("words", vp.Budget(3, 1e-5), create=True)
        app = app_with(folder, '\nheard = ""\n', server=SERVER)
        output = f'output="{server}/found" heard="{server}/heard" ledger="{server}/team.ledger" dataset="words"'
        config = f"epsilon=1.0 delta=1e-6 max-length=5 unit=1 nodes={NODES} patience=400.0 {output}"
        log = federation.run("run", app, config)
        federation.wait_for(lambda: "round 1 of" in log.read_text() or "nothing is released" in log.read_text())
        os.killpg(processes[KILLED].pid, signal.SIGKILL)
        table_of(nodes / f"{PLANTED}{CHANGED}.csv", CHANGED, ["mood"])
        table_of(nodes / f"{PLANTED}{BROKEN}.csv", BROKEN, COMMON)
        (server / "heard.go").touch()
        federation.wait_for(lambda: "saved to" in log.read_text() or "nothing is released" in log.read_text())
        time.sleep(2)
        yield folder, log.read_text()
    finally:
        federation.stop()


def test_the_run_continues_without_the_killed_and_the_strict_node(ran):
    """The common words are found.

    The word of the changed table is not found, although many users have this word after the change.
    """
    folder, log = ran
    release = vp.load(folder / "server" / "found")
    assert set(release) == set(COMMON)
    assert release.guarantee.private
    # Node 6 never answers. Node 7 answers from the second round, in which node 3 is lost.
    assert log.count("round 1: node ") == log.count("round 2: node ") == 2
    assert log.count("is skipped: lost or late") >= 1


def test_votes_of_the_changed_table_would_have_been_released(ran):
    """The previous test would detect votes from the changed table, because its word has enough users to be released."""
    folder, _ = ran
    table = pl.read_csv(folder / "nodes" / f"{PLANTED}{CHANGED}.csv")
    mechanism = vp.HeavyHitters(max_length=5, unit=1)
    corpus = vp.read(table, user="who", items="what")
    assert mechanism.plan(vp.Budget(1, 1e-6)).users_needed(0.99) <= table.filter(pl.col("what") == "mood").height
    assert mechanism.release(corpus, vp.Budget(1, 1e-6)).to_list() == ["mood"]


def test_no_planted_word_is_on_the_disk_or_in_a_log_of_the_server(ran):
    """The server's folder contains the SuperLink's database, the replies of all nodes, the logs, and the release."""
    folder, _ = ran
    files = [path for path in (folder / "server").rglob("*") if path.is_file()]
    names = {path.name for path in files}
    assert {"link.db", "heard", "run.log", "link.log", "release.json", "team.ledger"} <= names
    # The terminal of a node shows the name of its log, which is in a folder of the node.
    server = [path for path in files if not path.name.startswith("node")]
    assert [path for path in server if PLANTED.encode() in path.read_bytes()] == []
    assert [path for path in server if b"Traceback" in path.read_bytes() and path.suffix == ".log"] == []
    assert PLANTED.encode() in b"".join(path.read_bytes() for path in (folder / "nodes").rglob("answers.log"))
    heard = (folder / "server" / "heard").read_text()
    # The only errors are "Node Unavailable" or "Message Unavailable", which the SuperLink reports for the killed node.
    errors = [line for line in heard.splitlines() if " True Error(" in line]
    assert [line for line in errors if "code=3" not in line and "code=4" not in line and "code=5" not in line] == []
    assert heard.count("sums") > 5 * (NODES - 3)


def test_sent_text_is_found_in_the_database_of_the_server(ran):
    """The search would find planted words in the database, because it finds other text that was sent."""
    folder, _ = ran
    content = b"".join(path.read_bytes() for path in (folder / "server").glob("link.db*"))
    assert b"max-length" in content or b"hitters" in content


def test_every_folder_of_a_run_is_deleted_and_every_ledger_has_one_entry(ran):
    """The exceptions are the folder of the killed node, which has not expired, and the node that was never charged."""
    folder, _ = ran
    for number in range(NODES):
        state = folder / "nodes" / f"state{number}"
        left = list((state / "runs").iterdir()) if (state / "runs").exists() else []
        assert len(left) == (number == KILLED), number
        if number == STRICT:
            assert not (state / "ledger.json").exists()
        else:
            assert [each.label.split()[0] for each in vp.Ledger(state / "ledger.json").account("node").entries] == [
                "run"
            ]
    [entry] = vp.Ledger(folder / "server" / "team.ledger").account("words").entries
    assert entry.state == "finished"
    assert vp.load(folder / "server" / "found").metadata.ledger == entry.admission
