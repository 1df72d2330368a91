"""Test of the example with 100 simulated nodes. Some nodes are lost, and the table of one node changes."""

import os
import shutil
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

import voxpop as vp

pytest.importorskip("flwr", reason="flwr is not installed: pip install voxpop-flower")
pytest.importorskip("ray", reason='ray is not installed: pip install "voxpop-flower[simulation]"')

from benchmarks.support.federation import BIN, SOURCES, free_port

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower-simulation"
NODES = 100
MINUTES = 5


def is_served(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


@pytest.fixture
def link(tmp_path):
    """Start a SuperLink with simulated nodes, and return its environment."""
    port, home, app = free_port(), tmp_path / "home", tmp_path / "app"
    shutil.copytree(EXAMPLE, app, ignore=shutil.ignore_patterns("apps", "runtime-envs", "source"))
    shutil.copytree(app / "home", home)
    config = home / "config.toml"
    config.write_text(config.read_text().replace("8100", str(port)))
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(BIN), os.environ["PATH"]]),
        "PYTHONPATH": SOURCES,
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "VOXPOP_SIMULATION": str(tmp_path / "nodes"),
    }
    command = (app / "start.sh").read_text().split("exec ")[1].split()
    command = [str(port) if each == "8100" else each for each in command]
    with open(tmp_path / "link.log", "w") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    until = time.monotonic() + 120
    while not is_served(port) and time.monotonic() < until:
        time.sleep(0.5)
    yield environment
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def test_a_hundred_nodes_are_simulated_in_five_minutes(tmp_path, link, record_property):
    """The common words and the first word of the changing table are found. This table was read only once."""
    nodes, began = tmp_path / "nodes", time.monotonic()
    config = ["--federation-config", f"num-supernodes={NODES} client-resources-num-cpus=1"]
    output = ["--run-config", f'output="{tmp_path}/found"']
    run = [BIN / "flwr", "run", tmp_path / "app", "simulation", "--stream", *config, *output]
    done = subprocess.run(run, env=link, capture_output=True, text=True, timeout=60 * MINUTES, check=False)
    assert (tmp_path / "found").exists(), done.stdout[-3000:] + done.stderr[-3000:]
    assert vp.load(tmp_path / "found").to_list() == ["moon", "star", "sun", "word1"]
    assert (nodes / "node7" / "reads").read_text() == "once\n"
    assert "refused or failed" in done.stdout
    assert sum((each / "answers.log").exists() for each in nodes.iterdir()) > 90
    record_property("figure", f"{time.monotonic() - began:.0f} seconds")
