"""A real federation: a SuperLink and SuperNodes as separate processes on loopback, compared with the simulation."""

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import voxpop as vp

pytest.importorskip("flwr", reason="flwr is not installed: pip install voxpop[flower]")

from flwr.app import Context, RecordDict

from voxpop.errors import InputError
from voxpop.hitters.domain import Domain, public_symbols
from voxpop.hitters.flower import client_app
from voxpop.hitters.flower.settings import settings_of
from voxpop.hitters.node import node_votes
from voxpop.hitters.prefix import Prefix
from voxpop.hitters.trie import Trie
from voxpop.hitters.wire import write_trie
from voxpop.keys import Keys
from voxpop.privacy.secret import Secret

APP = Path(__file__).resolve().parent.parent.parent / "examples" / "flower"
BIN = Path(sys.executable).parent
MOODS = '''
"""A node that does not do what it should, if its config says so."""

import time

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp

from voxpop.hitters.flower import client_app

app = ClientApp()


@app.query()
def vote(message, context):
    mood, stage = context.node_config.get("mood"), message.content["round"]["stage"]
    if mood == "garbled":
        return Message(RecordDict({"votes": ConfigRecord({"sums": "[[[]]]"})}), reply_to=message)
    if mood == "lying":
        lie = '[[["z"],false,99],[["q"],false,-5]]'
        return Message(RecordDict({"votes": ConfigRecord({"sums": lie})}), reply_to=message)
    if mood == "again":
        client_app.app(message, context)  # the second answer to the same round is refused by the node itself
    if mood == stage:
        raise RuntimeError("lost at this stage")
    return client_app.app(message, context)
'''


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


WATCHED = '''
"""The server, whose memory is read when it is done: for the sums of each node, and for their total."""

import os
from pathlib import Path

from flwr.serverapp import ServerApp

from voxpop.hitters.flower import server_app
from voxpop.hitters.masking.collector import Collector

app = ServerApp()
kept = []
real = Collector.total
Collector.total = lambda self, nodes: kept.append((self, real(self, nodes))) or kept[-1][1]


@app.main()
def main(grid, context):
    server_app.main(grid, context)
    patterns = [bytes.fromhex(line) for line in Path(os.environ["VOXPOP_PATTERNS"]).read_text().split()]
    found = [0] * len(patterns)
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, access = line.split()[:2]
        low, high = (int(each, 16) for each in span.split("-"))
        if "rw" not in access:
            continue
        with open("/proc/self/mem", "rb", 0) as memory:
            try:
                memory.seek(low)
                text = memory.read(high - low)
            except (OSError, ValueError, OverflowError):
                continue
        found = [count + text.count(pattern) for count, pattern in zip(found, patterns)]
    Path(os.environ["VOXPOP_FOUND"]).write_text(" ".join(map(str, found)))
'''


class Federation:
    """Processes that are stopped in the end, each with a log."""

    def __init__(self, folder: Path):
        self.folder, self.link = folder, free_port()
        self.running: list[subprocess.Popen] = []
        self.runs = 0
        home = folder / "home"
        home.mkdir()
        connection = f'address = "127.0.0.1:{self.link}"\ninsecure = true\n'
        (home / "config.toml").write_text(f'[superlink]\ndefault = "loopback"\n\n[superlink.loopback]\n{connection}')
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        watched = {"VOXPOP_PATTERNS": str(folder / "patterns"), "VOXPOP_FOUND": str(folder / "counted")}
        flower = {"FLWR_HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0", "PATH": path}
        self.environment = {**os.environ, **flower, **watched}
        self.start(
            "link", "flower-superlink", "--insecure", "--port", self.link, "--disable-runtime-dependency-installation"
        )
        self.wait_for(lambda: socket.create_connection(("127.0.0.1", self.link), 1).close())

    def start(self, name: str, *command: object) -> subprocess.Popen:
        """Start a process of its own group, with its output in a file."""
        with open(self.folder / f"{name}.log", "w") as output:
            program, *rest = map(str, command)
            process = subprocess.Popen(
                [str(BIN / program), *rest],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environment,
                start_new_session=True,
            )
        self.running.append(process)
        return process

    def node(self, name: str, source: Path, mood: str = "well") -> subprocess.Popen:
        config = f'source="{source}" user="who" items="what" mood="{mood}"'
        address = f"127.0.0.1:{self.link}"
        return self.start(
            name,
            "flower-supernode",
            "--insecure",
            "--superlink",
            address,
            "--port",
            free_port(),
            "--node-config",
            config,
        )

    def run(self, app: Path, config: str) -> subprocess.Popen:
        self.runs += 1
        return self.start(f"run{self.runs}", "flwr", "run", app, "loopback", "--stream", "--run-config", config)

    def wait_for(self, works, seconds: float = 300.0) -> None:
        until = time.monotonic() + seconds
        while True:
            try:
                if works() is not False:
                    return
            except OSError:
                pass
            assert time.monotonic() < until, self.logs()
            time.sleep(0.5)

    def logs(self) -> str:
        return "\n".join(f"== {path.name}\n{path.read_text()[-1500:]}" for path in sorted(self.folder.glob("*.log")))

    def stop(self) -> None:
        for process in reversed(self.running):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(20)


@pytest.fixture
def federation(tmp_path):
    """A SuperLink, stopped in the end with all that was started beside it."""
    started = Federation(tmp_path)
    yield started
    started.stop()


def tables(folder: Path, count: int, words=("sua", "sub", "suc", "sud")) -> list[Path]:
    """One table per node: 300 users each, of whom each says its own name or one of four words."""
    paths = []
    for number in range(count):
        users = range(number * 300, number * 300 + 300)
        said = [words[(user * user + number) % 7 % len(words)] if user % 4 else f"u{user}" for user in users]
        paths.append(folder / f"node{number}.parquet")
        pl.DataFrame({"who": users, "what": said}).write_parquet(paths[-1])
    return paths


def app_with(folder: Path, **files: str) -> Path:
    """Return a copy of the example whose server or client is another."""
    app = folder / "app"
    (app / "hitters_app").mkdir(parents=True)
    for name in ("pyproject.toml", "hitters_app/__init__.py", "hitters_app/server.py", "hitters_app/client.py"):
        (app / name).write_text((APP / name).read_text())
    for name, text in files.items():
        (app / "hitters_app" / f"{name}.py").write_text(text.lstrip())
    return app


def config(folder: Path, patience: int, nodes: int, more: str = "", output: str = "found") -> str:
    return f'max-length=4 seed=11 nodes={nodes} patience={patience}.0 output="{folder / output}" {more}'


def patterns_of(paths: list[Path]) -> list[bytes]:
    """The bytes of each node's counts of the four words, as they lie in its vector, and those of their total."""
    plan = vp.HeavyHitters(max_length=4).plan(vp.Budget(1, 1e-6))
    domain = Domain(Trie(), plan.rules, public_symbols("characters", None))
    place = domain.place[Prefix(tuple("sua"), ended=True)]
    nodes = [vp.read(path, user="who", items="what") for path in paths]
    vectors = [
        domain.vector(node_votes(node, "characters", Trie(), plan.rules, Secret.from_seed(11))) for node in nodes
    ]
    return [vector[place : place + 4].astype("<u4").tobytes() for vector in [*vectors, sum(vectors)]]


def memory_holds(process: int, pattern: bytes) -> bool:
    """Whether the memory of a process that we started holds some bytes."""
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


def test_a_node_keeps_to_the_votes_it_was_asked_for_at_first(tmp_path):
    """Each ballot keeps to the budget of all rounds by itself; one after the other was not accounted for."""
    settings = settings_of({"epsilon": 1.0, "delta": 1e-6, "max-length": 6, "secure": False})
    node = {"source": str(tables(tmp_path, 1)[0]), "user": "who", "items": "what"}
    context, ballot = Context(1, 2, node, RecordDict(), {}), settings.plan.rules.ballot
    other = replace(ballot, rate=ballot.rate / 2)
    assert settings.certified(other).delta <= 1e-6
    later = Trie().grown(frozenset({Prefix(tuple("sunn"))}))

    def asked(trie, ballot):
        numbers = [ballot.rate, float(ballot.theta), ballot.again, ballot.further]
        return client_app._votes({"trie": write_trie(trie), "ballot": numbers}, settings, context)

    assert "sums" in asked(Trie(), ballot)
    with pytest.raises(InputError, match="other votes than in an earlier round"):
        asked(later, other)
    assert "sums" in asked(later, ballot)


@pytest.mark.slow
def test_a_secure_federation_finds_what_the_simulation_finds_and_its_server_sees_the_total_only(federation, tmp_path):
    """Three nodes, sums added up in secret: the release of one corpus with the same secret, bit by bit.

    The memory of the server's process, when it is done, holds the total and the counts of no node; nor does that of the
    SuperLink, which hands messages on, nor any log.
    """
    paths = tables(tmp_path, 3)
    patterns = patterns_of(paths)
    assert len(set(patterns)) == 4
    decoy = patterns[0][::-1]  # of no vector: what looking for a pattern itself leaves in memory
    (tmp_path / "patterns").write_text("\n".join(pattern.hex() for pattern in [*patterns, decoy]))
    for path in paths:
        federation.node(path.stem, path)
    federation.run(app_with(tmp_path, server=WATCHED), config(tmp_path, 120, 3))
    federation.wait_for(lambda: (tmp_path / "counted").exists() and (tmp_path / "counted").read_text() != "")
    *nodes, total, none = map(int, (tmp_path / "counted").read_text().split())
    assert nodes == [none] * 3
    assert total > none
    link = federation.running[0].pid
    assert not any(memory_holds(link, pattern) for pattern in patterns[:3])
    assert not any(pattern.hex() in log.read_text() for log in tmp_path.glob("*.log") for pattern in patterns[:3])
    release = vp.load(tmp_path / "found")
    whole = vp.HeavyHitters(max_length=4).release(vp.read(paths, user="who", items="what"), vp.Budget(1, 1e-6), seed=11)
    assert list(release) == list(whole) == ["sua", "sub", "suc", "sud"]
    assert "of no node its own sums" in release.guarantee.seen
    assert "not against the server" in release.plan.to_dict()["trust"]
    # The server reads no table, so it cannot say how it was read, nor from which columns.
    plan = replace(whole.plan, aggregation="secure")
    assert release == replace(whole, reading="", keys=Keys(), plan=plan, guarantee=plan.promise(private=False))


@pytest.mark.slow
def test_whom_secure_rounds_can_lose(federation, tmp_path):
    """One of four nodes is lost before its sums: the others are heard. One of three: the run fails closed, loudly."""
    app, paths = app_with(tmp_path, client=MOODS), tables(tmp_path, 4)
    nodes = [federation.node(path.stem, path, "masked" if number == 3 else "well") for number, path in enumerate(paths)]
    federation.run(app, config(tmp_path, 120, 4))
    federation.wait_for(lambda: (tmp_path / "found" / "release.json").exists(), 480)
    assert list(vp.load(tmp_path / "found")) == ["sua", "sub", "suc", "sud"]
    assert "is left out: lost, late or malformed" in (tmp_path / "run1.log").read_text()
    os.killpg(nodes[0].pid, signal.SIGKILL)
    federation.run(app, config(tmp_path, 60, 3, output="second"))
    federation.wait_for(lambda: "nothing is released" in (tmp_path / "run2.log").read_text(), 480)
    assert not (tmp_path / "second").exists()


@pytest.mark.slow
def test_lost_lying_and_malformed_nodes_are_left_out_of_open_rounds(federation, tmp_path):
    """Sums in the open: one node talks nonsense, one lies about counts, one answers twice; the others are heard.

    And two nodes hold the same users, who then vote twice. Nothing can see that, which is why the guarantee asks that
    nobody lives on two nodes: a word of 40 people is found as if 80 held it.
    """
    app, paths = app_with(tmp_path, client=MOODS), tables(tmp_path, 4)
    shared = tmp_path / "shared.parquet"
    pl.DataFrame({"who": range(9000, 9040), "what": ["zoo"] * 40}).write_parquet(shared)
    moods = ["garbled", "lying", "again", "well"]
    for path, mood in zip(paths, moods, strict=True):
        federation.node(path.stem, path, mood)
    for name in ("shared1", "shared2"):
        federation.node(name, shared)
    federation.run(app, config(tmp_path, 90, 6, "secure=false"))
    federation.wait_for(lambda: (tmp_path / "found" / "release.json").exists(), 480)
    log = tmp_path / "run1.log"
    federation.wait_for(lambda: "round 1 of at most 1 done" in log.read_text())
    assert log.read_text().count("sent what is no vote") == 3  # nonsense, a lie, and an answer that was refused
    rules = vp.HeavyHitters(max_length=4).plan(vp.Budget(1, 1e-6)).rules
    once, heard = vp.read(shared, user="who", items="what"), vp.read(paths[3], user="who", items="what")
    votes = node_votes(heard, "characters", Trie(), rules, Secret.from_seed(11))
    for _ in range(2):
        votes += node_votes(once, "characters", Trie(), rules, Secret.from_seed(11))
    expected = {prefix.symbols for prefix, count in votes.items() if count >= rules.theta and prefix.ended}
    assert {tuple(word) for word in vp.load(tmp_path / "found")} == expected
    assert tuple("zoo") in expected
    assert "sums of votes of every node" in vp.load(tmp_path / "found").guarantee.seen
