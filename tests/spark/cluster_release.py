"""Run a driver on a standalone cluster of two workers, with failures while tasks of length 2 run.

python cluster_release.py MASTER TABLE EVENTS WORKER_PID WORKER_PID

The driver makes one release for each failure. In the first, a task hangs, and Spark starts a copy of the task
(speculation). In the second, an executor is killed, and its worker starts another. In the third, a worker is killed and
is not replaced.
"""

import json
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

warnings.simplefilter("ignore")

from pyspark.sql import SparkSession  # noqa: E402

import voxpop as vp  # noqa: E402
from voxpop.engine.spark import walks as levels  # noqa: E402
from voxpop.engine.spark.histogram import SparkHistogram  # noqa: E402

master, path, events, *workers = sys.argv[1:]
os.environ["PYSPARK_PYTHON"] = sys.executable
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.5",  # One of two executors hangs, so only half of the tasks finish.
    "spark.shuffle.io.retryWait": "500ms",  # Spark waits three times for each lost executor.
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.dir": f"file://{events}",
}
builder = SparkSession.builder.master(master)
for name, value in SETTINGS.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
context = spark.sparkContext
noisy_levels = SparkHistogram.noisy_levels


def executors():
    """Return the number of executors registered with the driver."""
    return context._jsc.sc().getExecutorMemoryStatus().size() - 1


def wait_for(condition, what, seconds=300):
    """Wait at most `seconds` until the condition is true, and return its value."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"waited for {what}"
        time.sleep(0.01)
    return found


def running():
    """Return the number of running tasks."""
    tracker = context.statusTracker()
    stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    return sum(stage.numActiveTasks for stage in stages if stage)


def children(parents, named):
    """Return the child processes of the given processes whose command contains a string."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in parents and named in (folder / "cmdline").read_text():
                found.append(int(folder.name))
        except OSError:  # The process has ended.
            continue
    return found


def executor_of(worker):
    """Return the process ids of the executors that a worker has started."""
    return children([int(worker)], "CoarseGrainedExecutorBackend")


def hang():
    """Stop the Python processes of an executor's tasks as soon as the processes exist, so that Java waits for them."""
    daemons = wait_for(lambda: children(executor_of(workers[1]), "pyspark"), "the daemon of an executor")
    for python in wait_for(lambda: children(daemons, "pyspark"), "the Python of a task"):
        os.kill(python, signal.SIGSTOP)


def kill_executor():
    """Kill the Java process that runs tasks. Its worker remains."""
    for executor in executor_of(workers[1]):
        os.kill(executor, signal.SIGKILL)


def kill_worker():
    """Kill a worker and its executor, as if the machine failed."""
    os.killpg(int(workers[0]), signal.SIGKILL)


def released(harm):
    """Release phrases with a failure during tasks of length 2, and return the number of running tasks and the grams."""
    calls, ran = [], []

    def work():
        wait_for(lambda: running() > 1, "tasks to run")
        ran.append(running())
        harm()

    def grade(histogram, *arguments):
        calls.append(len(calls))
        if len(calls) == 2:
            threading.Thread(target=work, daemon=True).start()
        return noisy_levels(histogram, *arguments)

    levels.SparkHistogram.noisy_levels = grade
    corpus = vp.read(spark.read.parquet(path), user="who", text="what", options=vp.ReadOptions(partitions=6))
    ngrams = vp.papers.DPNE(max_length=4, max_phrases_per_user=4, max_spurious_share=0.4)
    release = ngrams.release(corpus, vp.Budget(4, 1e-8), seed=3)
    return {"running": ran[0], "grams": [list(gram) for gram in release.each_gram()]}


def first_executor():
    """Return the process ids of the current executors of the second worker."""
    return set(executor_of(workers[1]))


wait_for(lambda: executors() == 2, "both executors")
told = {"hung": released(hang)}
before = first_executor()
told["executor killed"] = released(kill_executor)
wait_for(lambda: first_executor() - before and executors() == 2, "another executor")
told["worker killed"] = released(kill_worker)
wait_for(lambda: executors() == 1, "the driver to notice")
spark.stop()  # This completes the event log.
print(json.dumps(told))
