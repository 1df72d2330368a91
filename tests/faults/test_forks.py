"""Work in a forked process either succeeds or raises an error immediately. It never waits for threads of the parent."""

import os
import subprocess
import sys

import polars as pl
import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

PROGRAM = """
import multiprocessing as mp, os, sys, warnings
from concurrent.futures import ProcessPoolExecutor
warnings.simplefilter("ignore")
if sys.argv[2] == "late":
    import polars as pl
    pl.DataFrame({"a": [1]}).select("a")
else:
    import polars as pl, voxpop as vp
SOURCES = {"jsonl": lambda name: name, "csv": lambda name: name, "parquet": lambda name: name,
           "polars": lambda name: pl.DataFrame({"user": range(2000), "text": ["tea time"] * 2000})}
def work(kind):
    import voxpop as vp
    source = SOURCES[kind]("t." + kind)
    data = vp.read(source, user="user", text="text", options=vp.ReadOptions(progress=False))
    release = vp.Items(max_items_per_user=1).release(data, vp.Budget(2, 1e-7))
    release.save(f"out-{kind}-{os.getpid()}")
    return len(release), release.to_polars().height
def safely(kind):
    import voxpop as vp
    from voxpop.kernels import threads
    threads.PROBED = 10.0  # If threads are lost, the test waits this long, by default a minute.
    try:
        return "done" if work(kind) == (2, 2) else "wrong"
    except vp.errors.InputError as error:
        return "refused" if "forked" in str(error) else repr(error)
if __name__ == "__main__":
    kind, way = sys.argv[1:]
    if way not in ("late", "first"):
        work(kind)
    if way == "os.fork":
        read, write = os.pipe()
        if not os.fork():
            os.write(write, safely(kind).encode())
            os._exit(0)
        print(os.read(read, 100).decode())
    elif way == "futures":
        with ProcessPoolExecutor(1, mp_context=mp.get_context("fork")) as pool:
            print(pool.submit(safely, kind).result())
    else:
        method = way if way in ("spawn", "forkserver") else "fork"
        with mp.get_context(method).Pool(1) as pool:
            print(pool.apply(safely, [kind]))
"""


def outcome(folder, kind, way):
    """Return the outcome of work in a process that was started with a given method.

    A process that hangs fails the test.
    """
    table = pl.DataFrame({"user": range(2000), "text": ["tea time"] * 2000})
    table.write_csv(folder / "t.csv")
    table.write_parquet(folder / "t.parquet")
    table.write_ndjson(folder / "t.jsonl")
    (folder / "program.py").write_text(PROGRAM)
    call = [sys.executable, "program.py", kind, way]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        ("parquet", "os.fork"),
        ("polars", "futures"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (("parquet", "fork"), ("polars", "os.fork"))),
    ],
)
def test_polars_in_a_fork_is_rejected_if_the_parent_used_it(tmp_path, kind, way):
    """The error contains the next step.

    Data in Parquet can be read and released, but the release cannot be converted to a polars table.
    """
    assert outcome(tmp_path, kind, way) == "refused"
    assert len(list(tmp_path.glob("out-*"))) == (2 if kind == "parquet" else 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_csv_and_json_lines_are_rejected_in_a_fork(tmp_path, kind):
    """Sources that polars reads, such as CSV and JSON lines, are rejected in a fork of a process that used polars."""
    assert outcome(tmp_path, kind, "fork") == "refused"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["spawn", "forkserver", "first"])
@pytest.mark.parametrize("kind", ["jsonl", "polars"])
def test_processes_with_separate_threads_can_read_and_release(tmp_path, kind, way):
    """A process that was spawned, or that was forked before polars was used, can read data and release items."""
    assert outcome(tmp_path, kind, way) == "done"


@pytest.mark.slow
def test_a_fork_before_the_import_succeeds_or_raises_an_error(tmp_path):
    """If it is unknown whether polars lost its threads, polars must answer a query within a time limit."""
    assert outcome(tmp_path, "jsonl", "late") in ("refused", "done")
