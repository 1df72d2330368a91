"""A standalone cluster of four workers of one core on loopback: an executor killed in every job, one worker slow.

python -m benchmarks.spark_cluster [undisturbed] [killed] [slow] [speculation]

MSNBC to length 6, weighted, published. Nothing is set but the master and, where it is meant, speculation.
*killed*: in each job that brings an answer an executor gets SIGKILL once tasks run. *slow*: the processes of one worker
stand still for nine tenths of every second.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.common import DATA, table

WORKERS = 4
CASES = ("undisturbed", "killed", "slow", "speculation")
PATH = DATA / "msnbc.parquet"


def main(wanted: list[str]) -> None:
    """Measure, print, write."""
    if wanted[:1] == ["driver"]:
        drive(*wanted[1:])
        return
    with tempfile.TemporaryDirectory() as folder:
        rows: list[list[object]] = [["case", "s", "executors killed", "same release"]]
        drive("local", "", f"{folder}/local")
        for case in wanted or CASES:
            with cluster(Path(folder, case)) as (address, workers):
                out = Path(folder, f"{case}.out")
                seconds, killed = one(case, address, workers, out)
                same = (out / "release.parquet").read_bytes() == Path(folder, "local/release.parquet").read_bytes()
                rows.append([case, f"{seconds:.1f}", killed, same])
        note = (
            f"Standalone, {WORKERS} workers of one core on a machine of two; load at the end {os.getloadavg()[0]:.1f}."
        )
        table("Spark: a cluster that fails", rows, "spark_cluster", note)


def one(case: str, address: str, workers: list[int], out: Path) -> tuple[float, int]:
    """Run a case; return its seconds and how many executors were killed."""
    stop = threading.Event()
    if case in ("slow", "speculation"):
        threading.Thread(target=slow_down, args=(workers[0], stop), daemon=True).start()
    command = [sys.executable, "-m", "benchmarks.spark_cluster", "driver", case, address, str(out), *map(str, workers)]
    start = time.perf_counter()
    try:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    finally:
        stop.set()
    return time.perf_counter() - start, int(done.stdout.split()[-1])


def drive(case: str, address: str, out: str, *workers: str) -> None:
    """Release what is released, on a cluster or here; print how many executors were killed."""
    import voxpop as vp

    published = {"guide": False, "budgets": "equal", "accounting": "published", "thresholds": "published"}
    ngrams = vp.NGrams(max_length=6, limit=10, weighting="weighted", **published)
    source: Any = str(PATH)
    killed: list[int] = []
    if case != "local":
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master(address).config("spark.executor.memory", "512m")
        if case == "speculation":
            builder = builder.config("spark.speculation", "true").config("spark.speculation.interval", "200ms")
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("OFF")
        source = spark.read.parquet(source)
        if case == "killed":
            kill_in_every_job(spark.sparkContext, list(map(int, workers)), killed)
    corpus = vp.read(source, user="user", sequence="sequence")
    ngrams.release(corpus, vp.Budget(1, 1e-7), seed=1).save(out)
    print(len(killed))


def kill_in_every_job(context: Any, workers: list[int], killed: list[int]) -> None:
    """Have an executor killed whenever an answer is asked for."""
    from voxpop.spark import histogram

    answer: Callable[..., Any] = histogram.answer

    def kill() -> None:
        tracker = context.statusTracker()
        while True:
            stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            if sum(stage.numActiveTasks for stage in stages if stage):
                break
            time.sleep(0.02)
        victims = [pid for worker in workers for pid in children(worker)]
        if victims:
            victim = victims[len(killed) % len(victims)]
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)

    def killing(frame: Any) -> Any:
        threading.Thread(target=kill, daemon=True).start()
        return answer(frame)

    histogram.answer = killing


def slow_down(worker: int, stop: threading.Event) -> None:
    """Let a worker's executors and their Pythons run for a tenth of each second."""
    while not stop.wait(0.1):
        family = [pid for child in children(worker) for pid in [child, *descendants(child)]]
        tell(family, signal.SIGSTOP)
        stop.wait(0.9)
        tell(family, signal.SIGCONT)


def tell(processes: list[int], what: int) -> None:
    """Send a signal to those that are still there."""
    for pid in processes:
        try:
            os.kill(pid, what)
        except ProcessLookupError:
            continue


def children(parent: int) -> list[int]:
    """Return the processes that a process started."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(status.parent.name))
    return sorted(found)


def descendants(parent: int) -> list[int]:
    """Return them, and what they started."""
    return [pid for child in children(parent) for pid in [child, *descendants(child)]]


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[int]]]:
    """Start a master and workers; yield its address and their processes."""
    import pyspark

    folder.mkdir()
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *arguments: str) -> Path:
        log = folder / f"{name}.log"
        command = [str(home / "bin" / "spark-class"), *arguments]
        own = {**environment, "SPARK_WORKER_DIR": str(folder / name)}
        with log.open("w") as file:
            started.append(subprocess.Popen(command, stdout=file, stderr=file, env=own, start_new_session=True))
        return log

    try:
        ports = ["--host", "127.0.0.1", "--webui-port", "0"]
        log = start("master", "org.apache.spark.deploy.master.Master", *ports, "--port", "0")
        address = said(log, r"spark://127\.0\.0\.1:\d+")
        size = ["--cores", "1", "--memory", "600m"]
        logs = [
            start(f"worker{n}", "org.apache.spark.deploy.worker.Worker", *ports, *size, address) for n in range(WORKERS)
        ]
        for each in logs:
            said(each, "Successfully registered")
        yield address, [process.pid for process in started[1:]]
    finally:
        for process in reversed(started):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def said(log: Path, pattern: str) -> str:
    """Return what a log says, once it does."""
    for _ in range(3000):
        found = re.search(pattern, log.read_text())
        if found:
            return found.group()
        time.sleep(0.1)
    raise TimeoutError(pattern)


if __name__ == "__main__":
    main(sys.argv[1:])
