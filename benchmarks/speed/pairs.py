"""User-item pairs, with Voxpop, with counts without privacy by polars and DuckDB, and with private peers, in one run.

python -m benchmarks.speed.pairs            # add --peers after `make bench-all`
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import polars as pl

import voxpop as vp
from benchmarks.datasets.pairs import pairs_file, write_pairs
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.common import BUDGET, OUT, ROOT, seconds
from benchmarks.support.engines import read_engine

BENCHMARK = Benchmark(__file__, ("speed_pairs",), (*SET_UNION, "reading", "release"), minutes=4, commands=("--peers",))

PAIRS = OUT / "pairs.parquet"
MORE_PAIRS = 40_000_000
PEERS = {
    "OpenDP, Gaussian threshold": ["opendp_threshold.py", str(PAIRS), "gaussian"],
    "OpenDP, Laplace threshold": ["opendp_threshold.py", str(PAIRS), "laplace"],
    "PipelineDP, Gaussian thresholding": ["pipelinedp_selection.py", str(PAIRS), "gaussian"],
}


def ours(path: Path) -> int:
    """Read the pairs, release the items, and return the number of released items."""
    corpus = read_engine(path, user="user", items="item")
    return len(vp.Items(max_items_per_user=100).release(corpus, BUDGET))


def by_polars(path: Path) -> int:
    """Count the distinct users of each item, without privacy."""
    return pl.scan_parquet(path).unique().group_by("item").len().collect().height


def by_duckdb(path: Path) -> int:
    """Count the distinct users of each item, without privacy."""
    import duckdb

    duckdb.sql("set enable_progress_bar = false")
    query = f"select item, count(*) from (select distinct user, item from '{path}') group by item"
    return len(duckdb.sql(query).fetchnumpy()["item"])


def whole_process() -> str:
    """Run the command line from its start to a saved release, and return the number of released items."""
    with tempfile.TemporaryDirectory() as folder:
        options = [
            "--user",
            "user",
            "--items",
            "item",
            "--epsilon",
            "3",
            "--delta",
            "4.54e-5",
            "-o",
            f"{folder}/r",
            "--json",
        ]
        program = [sys.executable, "-m", "voxpop.cli", "items", str(PAIRS), *options]
        done = subprocess.run(program, check=True, capture_output=True, text=True)
        return f"{json.loads(done.stdout)['released']:,}"


def peer(arguments: list[str]) -> str:
    """Run a peer in a separate environment, and return the number of released items."""
    program = [str(ROOT / "benchmarks" / ".venv" / "bin" / "python"), str(ROOT / "benchmarks" / "peers" / arguments[0])]
    done = subprocess.run([*program, *arguments[1:]], check=True, capture_output=True, text=True)
    return f"{int(done.stdout.split()[0]):,}"


def chosen_peers() -> dict[str, Callable[[], str]]:
    """Return the peers to run, or no peers without `--peers`."""
    if "--peers" not in sys.argv:
        return {}
    return {name: partial(peer, arguments) for name, arguments in PEERS.items()}


def in_turns(works: dict[str, Callable[[], str]]) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Run each task in turn, three times (PipelineDP once), and return the times and the numbers of released items."""
    times: dict[str, list[float]] = {name: [] for name in works}
    said: dict[str, str] = {}
    for turn in range(3):
        for name, work in works.items():
            if turn == 0 or "PipelineDP" not in name:
                times[name].append(seconds(lambda w=work, n=name: said.__setitem__(n, w()), 1))
    return times, said


def in_process(path: Path) -> list[list[str]]:
    """Return the rows of one file, which are medians of five runs in turn."""
    works = {"count without privacy, polars": by_polars, "count without privacy, DuckDB": by_duckdb, "voxpop": ours}
    taken: dict[str, list[float]] = {name: [] for name in works}
    released = 0
    for turn in range(6):
        for name, work in works.items():
            begun = time.perf_counter()
            released = work(path)
            if turn:
                taken[name].append(time.perf_counter() - begun)
    counting = median(taken["count without privacy, polars"])
    size = f"{pl.scan_parquet(path).select(pl.len()).collect().item() / 1e6:.1f} million, in process"
    return [
        [
            f"{name}, {size}",
            f"{median(each):.2f}",
            f"{median(each) / counting:.2f}",
            f"{released:,}" if name == "voxpop" else "-",
        ]
        for name, each in taken.items()
    ]


def main() -> None:
    """Measure, print and write the results."""
    OUT.mkdir(exist_ok=True)
    if not PAIRS.exists():
        write_pairs(PAIRS)
    rows = [["", "seconds", "ratio", "released"], *in_process(PAIRS), *in_process(pairs_file(MORE_PAIRS))]
    times, names = in_turns({"voxpop": whole_process, **chosen_peers()})
    whole = median(times["voxpop"])
    for name, each in times.items():
        rows.append(
            [f"{name}, 8.4 million, whole process", f"{median(each):.2f}", f"{median(each) / whole:.2f}", names[name]]
        )
    note = f"{pl.scan_parquet(PAIRS).select(pl.len()).collect().item():,} pairs; epsilon 3, delta e^-10, limit 100."
    note += " Ratios within processes are to polars, those of whole processes (in turns, medians of 3; "
    note += "PipelineDP once) to voxpop."
    BENCHMARK.table("User-item pairs", rows, "speed_pairs", note)


if __name__ == "__main__":
    main()
