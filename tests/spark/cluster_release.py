"""A driver on a standalone cluster, one of whose workers is killed while it weighs length 2.

python cluster_release.py MASTER TABLE WORKER_PID
"""

import json
import os
import signal
import sys
import threading
import time
import warnings

warnings.simplefilter("ignore")

from pyspark.sql import SparkSession  # noqa: E402

import voxpop as vp  # noqa: E402
from voxpop.spark import length_walk as levels  # noqa: E402
from voxpop.spark.histogram import SparkHistogram  # noqa: E402

master, path, worker = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.master(master)
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.executor.memory", "512m")
    .getOrCreate()
)
context = spark.sparkContext
told = {"executors": [], "killed_while_running": 0}


def executors():
    """Return how many executors the driver knows."""
    return context._jsc.sc().getExecutorMemoryStatus().size() - 1


def wait_for(condition, what):
    """Wait at most a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, f"waited for {what}"
        time.sleep(0.01)


def running():
    """Return how many tasks run."""
    tracker = context.statusTracker()
    stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    return sum(stage.numActiveTasks for stage in stages if stage)


def kill():
    """Kill the worker and its executor, as a machine that fails, once tasks run on it."""
    wait_for(lambda: running() > 1, "tasks to run")
    told["killed_while_running"] = running()
    os.killpg(worker, signal.SIGKILL)


noisy_levels, calls = SparkHistogram.noisy_levels, []


def killing(histogram, *arguments):
    """Grade as ever; at the second length, with a worker gone while tasks run."""
    calls.append(len(calls))
    if len(calls) == 2:
        told["executors"].append(executors())
        threading.Thread(target=kill, daemon=True).start()
    return noisy_levels(histogram, *arguments)


wait_for(lambda: executors() == 2, "both executors")
levels.SparkHistogram.noisy_levels = killing
corpus = vp.read(spark.read.parquet(path), user="who", text="what", partitions=6)
ngrams = vp.NGrams(max_length=4, limit=4, eta=0.4, weighting="weighted")
release = ngrams.release(corpus, vp.Budget(4, 1e-8), seed=3)
wait_for(lambda: executors() == 1, "the driver to notice")
told["executors"].append(executors())
print(json.dumps({**told, "grams": [list(gram) for gram in release.each_gram()]}))
