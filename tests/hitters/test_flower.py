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

APP = Path(__file__).resolve().parent.parent.parent / "examples" / "flower"
BIN = Path(sys.executable).parent
GARBLED = '''
"""A node that answers with what is no vote, if its config says so."""

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.clientapp import ClientApp

from voxpop.hitters.flower import client_app

app = ClientApp()


@app.query()
def vote(message, context):
    if context.node_config.get("mood") == "garbled":
        return Message(RecordDict({"votes": ConfigRecord({"sums": "[[[]]]"})}), reply_to=message)
    return client_app.app(message, context)
'''


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Federation:
    """Processes that are stopped in the end, each with a log."""

    def __init__(self, folder: Path):
        self.folder, self.link = folder, free_port()
        self.running: list[subprocess.Popen] = []
        home = folder / "home"
        home.mkdir()
        connection = f'address = "127.0.0.1:{self.link}"\ninsecure = true\n'
        (home / "config.toml").write_text(f'[superlink]\ndefault = "loopback"\n\n[superlink.loopback]\n{connection}')
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "FLWR_HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0", "PATH": path}
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
        return self.start("run", "flwr", "run", app, "loopback", "--stream", "--run-config", config)

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


def tables(folder: Path, count: int) -> list[Path]:
    """One table per node: 300 users each, of whom each says its own name or one of two words."""
    paths = []
    for number in range(count):
        users = range(number * 300, number * 300 + 300)
        words = [["sun", "moo"][user % 2] if user % 4 else f"u{user}" for user in users]
        paths.append(folder / f"node{number}.parquet")
        pl.DataFrame({"who": users, "what": words}).write_parquet(paths[-1])
    return paths


def config(folder: Path, patience: int, nodes: int) -> str:
    return f'max-length=4 seed=11 nodes={nodes} patience={patience}.0 output="{folder / "found"}"'


@pytest.mark.slow
def test_a_federation_finds_what_the_simulation_finds(federation, tmp_path):
    """Three nodes with their own tables; the release is that of one corpus with the same secret, bit by bit."""
    paths = tables(tmp_path, 3)
    for path in paths:
        federation.node(path.stem, path)
    federation.run(APP, config(tmp_path, 120, 3))
    federation.wait_for(lambda: (tmp_path / "found" / "release.json").exists())
    release = vp.load(tmp_path / "found")
    whole = vp.HeavyHitters(max_length=4).release(vp.read(paths, user="who", items="what"), vp.Budget(1, 1e-6), seed=11)
    assert list(release) == list(whole) == [("moo",), ("sun",)]
    assert release.guarantee.seen == "the server saw each node's sums of sampled votes before the threshold"
    # The server reads no table, so it cannot say how it was read.
    assert release == replace(whole, reading="", guarantee=replace(whole.guarantee, seen=release.guarantee.seen))


@pytest.mark.slow
def test_lost_and_malformed_nodes_are_left_out(federation, tmp_path):
    """Of five nodes one talks nonsense and one dies after the first round: the others are heard, and it is said."""
    app = tmp_path / "app"
    (app / "hitters_app").mkdir(parents=True)
    for name in ("pyproject.toml", "hitters_app/__init__.py", "hitters_app/server.py"):
        (app / name).write_text((APP / name).read_text())
    (app / "hitters_app" / "client.py").write_text(GARBLED.lstrip())
    paths = tables(tmp_path, 5)
    nodes = [
        federation.node(path.stem, path, "garbled" if number == 3 else "well") for number, path in enumerate(paths)
    ]
    federation.run(app, config(tmp_path, 90, 5))
    log = tmp_path / "run.log"
    federation.wait_for(lambda: "round 1 of at most 4 done" in log.read_text())
    os.killpg(nodes[4].pid, signal.SIGKILL)
    federation.wait_for(lambda: (tmp_path / "found" / "release.json").exists(), 480)
    assert list(vp.load(tmp_path / "found")) == [("moo",), ("sun",)]
    federation.wait_for(lambda: "round 4 of at most 4 done" in log.read_text())
    assert "sent what is no vote" in log.read_text()
    assert "going on without it" in log.read_text()
