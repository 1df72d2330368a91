"""Tests of a real federation of a SuperLink and four SuperNodes, which are separate processes on this machine.

The results are compared with the simulation. Several runs share the nodes at the same time, and each test waits for its
run. The run config determines the faults of the nodes and the server. Apart from these faults, the nodes and the server
run the same code as in production.
"""

import json
import logging
import shutil
import subprocess
import threading
import time
import zipfile
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import voxpop as vp
from support.look import read_engine

pytest.importorskip("flwr", reason="flwr is not installed: pip install voxpop-flower")

from benchmarks.support.federation import BIN, Federation, app_with
from benchmarks.support.forks import PLANNED, WAITS
from flwr.common.logger import LOGGER_NAME

from voxpop.errors import InputError
from voxpop.mechanisms.heavy_hitters.protocol import Prefix, Trie, grow
from voxpop.privacy.planned import with_record
from voxpop.privacy.secret import Secret
from voxpop_flower.federation import Domain, node_votes, public_symbols
from voxpop_flower.serving import _in_one_line

NODES = 4
AT_A_TIME = 6
POLLS = "FLWR_SUPEREXEC_TASK_POLL_INTERVAL"
"""The name of the setting for the number of seconds after which Flower searches again for tasks to start."""
SECRET = Secret.from_seed(11)
BUDGET = vp.Budget(1, 1e-6)
WHOLE = vp.HeavyHitters(max_length=4).plan(BUDGET)
"""A plan of one round. A word has three letters and an end mark."""
UNITS: list[dict[str, int]] = [{}, {"unit": 1}, {"unit": 2}]
"""The settings of the plans, which are WHOLE and plans that add one or two letters per round."""
ROOT = Trie()
CLIENT = '''
"""A node that follows the run config: "3:1.masked=lost" is for node 3 when sums are requested in round 1."""

import time
from collections import Counter
from pathlib import Path

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp

from voxpop.mechanisms.heavy_hitters.protocol import Prefix
from voxpop_flower import node as flower

app = ClientApp()
honest = flower.node_votes


@app.query()
def vote(message, context):
    told, config = message.content["round"], context.run_config
    now = f"{context.node_config['place']}:{int(told.get('number', 0)) + 1}.{told['stage']}"
    deed = dict(each.split("=") for each in config["deeds"].split()).get(now)
    if deed == "lost":
        raise RuntimeError("lost at this stage")
    if deed in ("garbled", "malformed"):
        lie = "[[[]]]" if deed == "garbled" else '[[["z"],false,99],[["q"],false,-5]]'
        return Message(RecordDict({"votes": ConfigRecord({"sums": lie})}), reply_to=message)
    if deed == "again":
        flower.client(message, context)  # the second answer to the same round is refused by the node itself
    if deed == "late":
        while not (Path(config["folder"]) / "closed").exists():
            time.sleep(0.1)
    lies = dict(each.split("=") for each in config["lies"].split()) if deed == "lies" else {}
    added = Counter({Prefix(tuple(word), ended=True): int(count) for word, count in lies.items()})
    flower.node_votes = lambda *given: honest(*given) + added
    answer = flower.client(message, context)
    if deed == "short":
        answer.content["votes"]["sums"] = answer.content["votes"]["sums"][:-4]
    if deed == "stranger":
        answer.content["votes"]["domain"] = bytes(32)  # the places of its sums have another meaning
    if deed == "late":
        (Path(config["folder"]) / "late").touch()
    return answer
'''
SERVER = '''
"""The server. If the run config requests it, it asks again, closes a stage early, or its memory is read at the end."""

import threading
import time
from pathlib import Path

from flwr.app import Message
from flwr.serverapp import ServerApp

from voxpop_flower import serving as flower
from voxpop_flower.masking import Collector

BLOCK = 1 << 22
app = ServerApp()
kept = []
real = Collector.total
Collector.total = lambda self, nodes: kept.append((self, real(self, nodes))) or kept[-1][1]


class Changed:
    """The way to the nodes, with a fault."""

    def __init__(self, grid, fault, folder):
        self.grid, self.fault, self.folder, self.stages = grid, fault, folder, 0

    def get_node_ids(self):
        return self.grid.get_node_ids()

    def send_and_receive(self, messages, *, timeout):
        messages, self.stages = list(messages), self.stages + 1
        if self.fault == "closes" and self.stages == 3:
            return self.all_but_one(messages)
        if self.fault == "closes" and self.stages == 5:
            while not (self.folder / "late").exists():
                time.sleep(0.1)
            threading.Event().wait(5)  # time to send it; sleeps are shorter here
        answers = list(self.grid.send_and_receive(messages, timeout=timeout))
        if self.fault != "twice":
            return answers
        ids = [message.metadata.dst_node_id for message in messages]
        copies = [Message(m.content, i, "query", group_id="again") for m, i in zip(messages, ids)]
        return [*self.grid.send_and_receive(copies, timeout=timeout), *answers]

    def all_but_one(self, messages):
        waiting, answers = list(self.grid.push_messages(messages)), []
        while len(answers) < len(messages) - 1:
            came = list(self.grid.pull_messages(waiting))
            answers, heard = answers + came, {answer.metadata.reply_to_message_id for answer in came}
            waiting = [number for number in waiting if number not in heard]
            time.sleep(1)
        (self.folder / "closed").touch()
        return answers


@app.main()
def main(grid, context):
    config = context.run_config
    folder = Path(config["folder"])
    flower.serve(Changed(grid, config["server"], folder), context)
    if config["server"] == "watched":
        patterns = [bytes.fromhex(line) for line in (folder / "patterns").read_text().split()]
        found = [0] * len(patterns)
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, access = line.split()[:2]
            low, high = (int(each, 16) for each in span.split("-"))
            if "rw" not in access:
                continue
            with open("/proc/self/mem", "rb", 0) as memory:
                for start in range(low, high, BLOCK):
                    try:
                        memory.seek(start)
                        # The next block's first bytes, too: a pattern that begins in this one.
                        text = memory.read(min(BLOCK + len(patterns[0]) - 1, high - start))
                    except (OSError, ValueError, OverflowError):
                        break
                    if text.count(0) < len(text):  # reserved and never used: a gigabyte of zeros
                        found = [count + text.count(pattern) for count, pattern in zip(found, patterns)]
                    time.sleep(0)  # Flower's heartbeat must go on
        (folder / "counted.part").write_text(" ".join(map(str, found)))
        (folder / "counted.part").rename(folder / "counted")
    (folder / "done").touch()
'''
MORE = '\ndeeds = ""\nlies = ""\nserver = ""\nfolder = ""\n'
LOSSES = "3:1.keys=lost 2:2.shares=lost 1:3.masked=lost 0:4.unmasking=lost"


def votes_of(path: Path, trie: Trie = ROOT, plan=WHOLE) -> Counter[Prefix]:
    return node_votes(read_engine(path, user="who", items="what"), trie, plan.rules, SECRET)


def first_holder(path: Path) -> int:
    """Return a user who is sampled in the first round and has only the word "zoo"."""
    for user in range(5000, 5100):
        pl.DataFrame({"who": [user], "what": ["zoo"]}).write_parquet(path)
        if votes_of(path):
            return user
    raise AssertionError("a hundred users, and none is asked")


def shared_users(path: Path) -> int:
    """Return a number of users that is enough to find their word if they are on two nodes, but not on one node."""
    for count in range(1, 60):
        pl.DataFrame({"who": range(9000, 9000 + count), "what": ["two"] * count}).write_parquet(path)
        if sum(votes_of(path).values()) * 2 >= WHOLE.theta:
            assert sum(votes_of(path).values()) < WHOLE.theta
            return count
    raise AssertionError("sixty users, and they are not enough")


def tables(folder: Path) -> list[Path]:
    """Write one table of 500 users per node.

    Common words make up 70 % of the table, a word that only this node has 20 %, and unique words 10 %.

    There are four common words. Only one user on node 1 has "zoo". Some users are on both node 2 and node 3.
    """
    paths = []
    twice = range(9000, 9000 + shared_users(folder / "shared.parquet"))
    for number in range(NODES):
        who = list(range(number * 500, number * 500 + 500))
        said = [*["sua"] * 3, *["sub"] * 2, "suc", "sud", *[f"{'abcd'[number]}wx"] * 2]
        what = [[*said, f"u{user}"][user % 10] for user in who]
        if number == 1:
            who, what = [*who, first_holder(folder / "alone.parquet")], [*what, "zoo"]
        if number >= 2:
            who, what = [*who, *twice], [*what, *["two"] * len(twice)]
        paths.append(folder / f"node{number}.parquet")
        pl.DataFrame({"who": who, "what": what}).write_parquet(paths[-1])
    return paths


def lies(paths: list[Path]) -> str:
    """Return false votes for three words.

    With these votes, the word of one user has one vote too few, an unused word has many, and a common word has a total
    of 0.
    """
    honest = sum((votes_of(path) for path in paths), Counter())[Prefix(tuple("sua"), ended=True)]
    assert honest >= WHOLE.theta
    return f"zoo={WHOLE.theta - 1} qqq={2**31} sua={2**32 - honest}"


class Runs:
    """All runs of the federation, which start in the background.

    Attributes:
        paths: The tables of the nodes.
    """

    def __init__(self, folder: Path):
        self.folder, self.paths = folder, tables(folder)
        plans = [{"epsilon": BUDGET.epsilon, "delta": BUDGET.delta, "max-length": 4, **more} for more in UNITS]
        environment = {WAITS: "0.2", POLLS: "2", PLANNED: json.dumps(plans)}
        # A SuperLink starts one server for each run, and a node starts a process for each answer.
        self.federation = Federation(folder, {POLLS: "5"}, **environment)
        self.patterns = patterns_of(self.paths)
        for number, path in enumerate(self.paths):
            state = folder / f"state{number}"
            state.mkdir()
            bounds = f'state="{state}" total-epsilon=8.0 total-delta=1e-5 secure=false allow-seed=true'
            self.federation.node(f"node{number}", f'source="{path}" user="who" items="what" place={number} {bounds}')
        self.app = app_with(folder, MORE, client=CLIENT, server=SERVER)
        self.waiting: list[tuple[str, str]] = []
        self.start("honest", server="watched")
        self.start("losses", "unit=1", deeds=LOSSES)
        for stage in ("keys", "shares", "masked", "unmasking"):
            self.start(f"beyond-{stage}", deeds=f"2:1.{stage}=lost 3:1.{stage}=lost")
        self.start("late", "unit=2", deeds="3:1.masked=late 3:2.keys=lost", server="closes")
        self.start("malformed", "unit=2", deeds="3:1.masked=short 2:2.masked=stranger")
        self.start("malformed-both", deeds="3:1.masked=short 2:1.masked=stranger")
        self.start("lies", deeds="0:1.masked=lies", lies=lies(self.paths))
        self.start("twice", server="twice")
        self.start("open", "secure=false", deeds="0:1.votes=garbled 1:1.votes=again")
        self.start("open-malformed", "secure=false", deeds="0:1.votes=malformed")
        self.starting = threading.Thread(target=self.start_all, daemon=True)
        self.starting.start()

    def start(self, name: str, more: str = "", **texts: str) -> None:
        """Add a run with its faults to the queue."""
        mine = self.folder / name
        mine.mkdir()
        (mine / "patterns").write_text("\n".join(pattern.hex() for pattern in self.patterns))
        told = "".join(
            f' {key}="{text}"' for key, text in {"folder": str(mine), "output": f"{mine}/found", **texts}.items()
        )
        self.waiting.append((name, f"max-length=4 seed=11 nodes={NODES} patience=400.0 {more}{told}"))

    def start_all(self) -> None:
        """Start the runs in order, with at most `AT_A_TIME` runs at a time."""
        running: list[str] = []
        for name, config in self.waiting:
            while len(running) == AT_A_TIME:
                time.sleep(0.2)
                running = [each for each in running if not self.over(each)]
            self.federation.run(name, self.app, config)
            running.append(name)

    def over(self, name: str) -> bool:
        """Return whether a run has ended, with or without an error."""
        return (self.folder / name / "done").exists() or "ERROR" in (self.folder / f"{name}.log").read_text()

    def release(self, name: str) -> vp.Release:
        """Wait for a run, and return its release."""
        self.federation.wait_for((self.folder / name / "done").exists)
        return vp.load(self.folder / name / "found")

    def failed(self, name: str) -> str:
        """Wait for a run that releases nothing, and return the log of its server."""
        log = self.folder / f"{name}.log"
        # Before the run starts, there is no log, so that reading it raises an OSError.
        self.federation.wait_for(lambda: "nothing is released" in log.read_text())
        assert not (self.folder / name / "found").exists()
        return log.read_text()

    def says(self, name: str, what: str) -> str:
        """Wait until the log of a run contains a text that is written after the release, and return the log."""
        log = self.folder / f"{name}.log"
        self.federation.wait_for(lambda: what in log.read_text())
        return log.read_text()

    def expected(self, plan, lost=()) -> set[str]:
        """Return the words that a run finds if the sums of the (node, round) pairs in `lost` are missing."""
        trie = Trie()
        for number in range(1, plan.rounds + 1):
            votes: Counter[Prefix] = Counter()
            for node, path in enumerate(self.paths):
                votes += Counter() if (node, number) in lost else votes_of(path, trie, plan)
            trie = grow(trie, votes, plan.rules)
        return {"".join(map(str, word)) for word in trie.words}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Start the federation with all its runs, and stop it at the end."""
    started = Runs(tmp_path_factory.mktemp("federation"))
    yield started
    started.federation.stop()


def patterns_of(paths: list[Path]) -> list[bytes]:
    """Return the bytes of each node's counts of words "su?" in its vector, of their total, and of a decoy.

    The decoy is in no vector. The decoy counts the copies of a pattern that the search itself leaves in memory.
    """
    domain = Domain(Trie(), WHOLE.rules, public_symbols("characters", None))
    place = domain.place_of(Prefix(tuple("sua"), ended=True))
    vectors = [domain.vector(votes_of(path)) for path in paths]
    found = [vector[place : place + 4].astype("<u4").tobytes() for vector in [*vectors, sum(vectors)]]
    assert len(set(found)) == NODES + 1
    return [*found, found[0][::-1]]


def memory_holds(process: int, pattern: bytes) -> bool:
    """Return whether the memory of a process that the tests started contains a pattern of bytes."""
    for line in Path(f"/proc/{process}/maps").read_text().splitlines():
        span, access = line.split()[:2]
        low, high = (int(each, 16) for each in span.split("-"))
        if "rw" not in access:
            continue
        with open(f"/proc/{process}/mem", "rb", 0) as memory:
            try:
                memory.seek(low)
                if pattern in memory.read(high - low):
                    return True
            except (OSError, ValueError, OverflowError):
                continue
    return False


@pytest.mark.slow
def test_a_secure_federation_agrees_with_the_simulation_and_its_server_has_only_totals(runs):
    """Masked sums give the release of the simulation, which is the release of one corpus except for users of two nodes.

    At the end, the memory of the server's process contains the total but no counts of any node. The memory of the
    SuperLink, which forwards messages, and all logs contain no counts of any node either.
    """
    release = runs.release("honest")
    *nodes, total, none = map(int, (runs.folder / "honest" / "counted").read_text().split())
    assert nodes == [none] * NODES
    assert total > none
    assert not any(memory_holds(runs.federation.link.pid, pattern) for pattern in runs.patterns[:NODES])
    logs = [log.read_text() for log in runs.folder.glob("*.log")]
    assert not any(pattern.hex() in log for log in logs for pattern in runs.patterns[:NODES])
    whole = WHOLE.release(read_engine(runs.paths, user="who", items="what"), seed=11)
    found = runs.expected(WHOLE)
    assert set(release) == found >= {"awx", "bwx", "cwx", "dwx", "sua", "sub", "suc", "sud", "two"}
    assert "zoo" not in found
    # A user of two nodes counts as two users in the federation, but as one user if both tables are read together.
    assert list(release) == sorted([*whole, "two"])
    assert "not the sums of any single node" in release.guarantee.server_view
    assert "not against the server" in release.plan.to_dict()["trust"]
    # The server reads no table, so its plan contains no record of reading one.
    plan = with_record(WHOLE, aggregation="secure")
    assert release.plan.to_dict() == plan.to_dict()
    assert (release.guarantee, release.token_source) == (plan.begin(0)[1], "")


@pytest.mark.slow
def test_a_run_continues_if_one_of_four_nodes_is_lost_at_any_stage(runs):
    """A node that is lost before keys, shares or sums is excluded from that round.

    A node that is lost after sending its sums is included.

    The run continues.
    """
    plan = vp.HeavyHitters(max_length=4, unit=1).plan(BUDGET)
    found = runs.expected(plan, {(3, 1), (2, 2), (1, 3)})
    assert set(runs.release("losses")) == found
    assert found & {"awx", "bwx", "cwx", "dwx"} == {"awx"}
    log = runs.says("losses", "round 4 of at most 4 done")
    for number in (1, 2, 3):
        assert log.count(f"round {number}: node ") == 1
    assert log.count("is skipped: refused or failed") == 3
    assert log.count("counted, but did not help to unmask: refused or failed") == 1


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["keys", "shares", "masked", "unmasking"])
def test_a_run_that_loses_two_of_four_nodes_releases_nothing(runs, stage):
    """At every stage, a round with too few nodes ends with an error and releases nothing."""
    assert "2 of 4 nodes are left and 3 are needed" in runs.failed(f"beyond-{stage}")


@pytest.mark.slow
def test_an_answer_to_a_closed_stage_is_ignored(runs):
    """Sums that arrive after the next round has begun are ignored, and the run continues without the node."""
    plan = vp.HeavyHitters(max_length=4, unit=2).plan(BUDGET)
    found = runs.expected(plan, {(3, 1), (3, 2)})
    assert set(runs.release("late")) == found
    assert (runs.folder / "late" / "late").exists()
    assert "dwx" not in found
    assert "dwx" in runs.expected(plan)
    assert "is skipped: lost or late" in runs.says("late", "round 2 of at most 2 done")


@pytest.mark.slow
def test_sums_of_another_length_or_domain_are_skipped_with_a_message(runs):
    """A node that sends too few numbers or uses other letters is excluded.

    If two nodes are excluded, nothing is released.
    """
    plan = vp.HeavyHitters(max_length=4, unit=2).plan(BUDGET)
    found = runs.expected(plan, {(3, 1), (2, 2)})
    assert set(runs.release("malformed")) == found
    assert found & {"awx", "bwx", "cwx", "dwx"} == {"awx", "bwx"}
    log = runs.says("malformed", "round 2 of at most 2 done")
    assert log.count("is skipped: its answer does not fit the round") == 2
    both = runs.failed("malformed-both")
    assert both.count("is skipped: its answer does not fit the round") == 2


@pytest.mark.slow
def test_a_dishonest_node_controls_the_words_and_breaks_the_guarantee(runs):
    """If a node sends all votes that a word needs except one, the result reveals whether other users have this word.

    Therefore the guarantee requires honest nodes.

    In addition, a word without users is found, and a word with hundreds of users is lost because sums are modulo 2^32.
    """
    honest = runs.expected(WHOLE)
    assert "zoo" not in honest
    assert set(runs.release("lies")) == (honest - {"sua"}) | {"zoo", "qqq"}


@pytest.mark.slow
def test_a_node_that_receives_a_request_twice_is_counted_once(runs):
    """Each node answers the first of two identical messages and rejects the second, so the result is the same."""
    assert set(runs.release("twice")) == runs.expected(WHOLE)
    assert "is skipped" not in runs.says("twice", "round 1 of at most 1 done")


@pytest.mark.slow
def test_lost_and_malformed_nodes_are_excluded_from_open_rounds(runs):
    """With open sums, one node sends invalid text and one node answers twice. Only the other nodes are counted.

    Some users are on two nodes and vote twice. The server cannot detect this, and finds a word that has only half of
    the required users. Therefore the guarantee requires that no user is on two nodes.
    """
    release, found = runs.release("open"), runs.expected(WHOLE, {(0, 1), (1, 1)})
    assert set(release) == found
    assert "two" in found
    assert "two" not in set(WHOLE.release(read_engine(runs.paths[2:], user="who", items="what"), seed=11))
    log = runs.says("open", "round 1 of at most 1 done")
    assert (log.count("sent an invalid vote"), log.count("refused or failed")) == (1, 1)
    assert "sums of votes of every node" in release.guarantee.server_view
    assert set(runs.release("open-malformed")) == runs.expected(WHOLE, {(0, 1)})
    assert runs.says("open-malformed", "round 1 of at most 1 done").count("sent an invalid vote") == 1


def test_files_of_a_run_do_not_become_part_of_the_app(tmp_path):
    """Files of runs are not sent to the nodes, because apps within apps would soon be nested too deeply for Flower."""
    app = tmp_path / "app"
    shutil.copytree(Path(__file__).parents[2] / "examples" / "flower", app)
    for name in ("home/apps/hitters/README.md", "home/apps/hitters/client.py", "keys/node.py", "hitters/words.py"):
        (app / name).parent.mkdir(parents=True, exist_ok=True)
        (app / name).write_text("")
    subprocess.run([BIN / "flwr", "build", "--app", app], cwd=tmp_path, check=True, capture_output=True)
    [built] = tmp_path.rglob("*.fab")
    folders = {name.split("/")[0] for name in zipfile.ZipFile(built).namelist() if "/" in name}
    assert folders == {"hitters_app", ".info"}


def test_a_failure_is_logged_in_one_line(caplog):
    """Flower logs exceptions of the server with their traceback, but for errors of Voxpop, it logs only the message."""
    logger, records = logging.getLogger(LOGGER_NAME), []
    sink = logging.Handler()
    sink.emit = lambda record: records.append(sink.format(record))
    logger.addHandler(sink)
    logger.addFilter(_in_one_line)
    try:
        for error in (InputError("0 of 3 nodes\n are left. Start more."), RuntimeError("a fault")):
            try:
                raise error
            except Exception as caught:
                logger.error("%s raised an exception", "ServerApp", exc_info=caught)
    finally:
        logger.removeFilter(_in_one_line)
        logger.removeHandler(sink)
    assert records[0] == "voxpop: 0 of 3 nodes are left. Start more."
    assert "Traceback" in records[1]
