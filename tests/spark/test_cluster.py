"""Tests of a standalone cluster with a master and two workers on one machine.

During the tests, a task hangs, an executor is killed, and a worker is killed.
"""

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
SECONDS = 300


class Daemon:
    """A Spark daemon in its own process group, which ends together with all its child processes."""

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
        """Return the match of a pattern as soon as the log contains a match."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            found = re.search(pattern, self.log.read_text())
            if found:
                return found
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.1)
        raise AssertionError(f"waited for {pattern}: {self.log.read_text()}")

    def end(self):
        """End the process group if it is running."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def cluster(java, tmp_path):
    """Return the address of a master and its two workers, which have one core each."""
    daemons = [Daemon(tmp_path, "master", "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")]
    try:
        address = daemons[0].wait_for(r"spark://127\.0\.0\.1:\d+").group()
        for number in range(2):
            # The workers have separate hosts, because Spark does not start a copy of a task on the host where it hangs.
            size = ["--cores", "1", "--memory", "600m", "--host", f"127.0.0.{2 + number}", "--webui-port", "0"]
            daemons.append(Daemon(tmp_path, f"worker{number}", "worker.Worker", *size, address))
        for worker in daemons[1:]:
            worker.wait_for("Successfully registered")
        yield address, daemons[1:]
    finally:
        for daemon in reversed(daemons):
            daemon.end()


def test_failures_during_a_length_do_not_change_the_release(cluster, talk, tmp_path):
    """Spark recomputes lost data from the source or in a copy of the task, so the release equals the local release."""
    address, workers = cluster
    path, events = tmp_path / "talk.parquet", tmp_path / "events"
    events.mkdir()
    talk.write_parquet(path)
    processes = [str(worker.process.pid) for worker in workers]
    driver = [sys.executable, str(HERE / "cluster_release.py"), address, str(path), str(events), *processes]
    done = subprocess.run(driver, capture_output=True, text=True, timeout=4 * SECONDS)
    assert done.returncode == 0, done.stderr[-8000:]
    told = json.loads(done.stdout.splitlines()[-1])
    log = "".join(file.read_text() for file in events.rglob("events_*"))
    assert '"Speculative":true' in log
    assert log.count('"Event":"SparkListenerExecutorRemoved"') >= 2
    assert workers[0].process.wait(SECONDS) == -signal.SIGKILL
    ngrams = vp.papers.DPNE(max_length=4, max_phrases_per_user=4, max_spurious_share=0.4)
    local = ngrams.release(vp.read(talk, user="who", text="what"), vp.Budget(4, 1e-8), seed=3)
    assert len(local) > 20
    for what in ("hung", "executor killed", "worker killed"):
        assert told[what]["running"] > 1
        assert told[what]["grams"] == [list(gram) for gram in local], what
