"""A standalone cluster of a master and two workers on loopback, one of which is killed during a length."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import voxpop as vp

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
SECONDS = 120


class Daemon:
    """A process group of Spark's own: it and what it starts end together."""

    def __init__(self, folder, name, *arguments):
        import pyspark

        home = Path(pyspark.__file__).parent
        self.log = folder / f"{name}.log"
        environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_WORKER_DIR": str(folder / name)}
        before = [path for path in [os.environ.get("PYTHONPATH")] if path]
        environment["PYTHONPATH"] = os.pathsep.join([str(HERE), str(HERE.parent), *before])
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:]],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    def wait_for(self, pattern):
        """Return what the log says, once it does."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            found = re.search(pattern, self.log.read_text())
            if found:
                return found
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.1)
        raise AssertionError(f"waited for {pattern}: {self.log.read_text()}")

    def end(self):
        """End the group, if it is there."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def cluster(java, tmp_path):
    """Return the address of a master, and two workers of one core each."""
    daemons = [Daemon(tmp_path, "master", "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")]
    try:
        address = daemons[0].wait_for(r"spark://127\.0\.0\.1:\d+").group()
        for number in range(2):
            size = ["--cores", "1", "--memory", "600m", "--host", "127.0.0.1", "--webui-port", "0"]
            daemons.append(Daemon(tmp_path, f"worker{number}", "worker.Worker", *size, address))
        for worker in daemons[1:]:
            worker.wait_for("Successfully registered")
        yield address, daemons[1:]
    finally:
        for daemon in reversed(daemons):
            daemon.end()


def test_a_worker_killed_during_a_length_changes_nothing(cluster, talk, tmp_path):
    """Its blocks are made again from the source on the other one, and the release is that of this machine."""
    address, workers = cluster
    path = tmp_path / "talk.parquet"
    talk.write_parquet(path)
    driver = [sys.executable, str(HERE / "cluster_release.py"), address, str(path), str(workers[0].process.pid)]
    done = subprocess.run(driver, capture_output=True, text=True, timeout=4 * SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["executors"] == [2, 1]
    assert told["killed_while_running"] > 1
    assert workers[0].process.wait(SECONDS) == -signal.SIGKILL
    ngrams = vp.NGrams(max_length=4, limit=4, eta=0.4, weighting="weighted")
    local = ngrams.release(vp.read(talk, user="who", text="what"), vp.Budget(4, 1e-8), seed=3)
    assert [list(gram) for gram in local] == told["grams"]
    assert len(local) > 20
