"""Seconds from an empty environment to a first release, for four roles, each with a different table.

`python -m benchmarks.speed.first_release [PYTHON]`, where PYTHON is the interpreter of the new environment. Packages
are from the index or from the cache of pip. No role uses kernels that were compiled for another role.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.support.benchmark import NGRAMS, Benchmark
from benchmarks.support.common import ROOT

BENCHMARK = Benchmark(__file__, ("first_release",), (*NGRAMS, "release"), minutes=3)

TEXTS = """
import polars as pl, voxpop as vp
texts = ["Thank you very much!", "See you soon, thank you"] * 2000
posts = vp.read(pl.DataFrame({"author": range(4000), "body": texts}), user="author", text="body")
phrases = vp.NGrams(max_length=3, max_phrases_per_user=20).release(posts, vp.Budget(epsilon=4, delta=1e-7))
assert ("thank", "you") in phrases
"""
KEYS = """
import polars as pl, voxpop as vp
sales = pl.DataFrame({"user": range(4000), "shop": [7, 8] * 1999 + [7, 4711]})
data = vp.read(sales, user="user", items="shop")
keys = vp.Items(max_items_per_user=1).release(data, vp.Budget(epsilon=1, delta=1e-8))
assert sorted(vp.exports.filter(keys, sales)["shop"].unique()) == [7, 8]
"""
CLICKS = """
import polars as pl, voxpop as vp
visitors = [number for number in range(3000) for _ in "ab"]
clicks = pl.DataFrame({"visitor": visitors, "page": ["home", "news"] * 3000, "time": [0, 60] * 3000})
visits = vp.read(clicks, user="visitor", sequence="page", order="time", session_gap=1800)
paths = vp.NGrams(max_length=3, max_phrases_per_user=20).release(visits, vp.Budget(epsilon=4, delta=1e-7))
assert ("home", "news") in paths
"""
SIGNED = """
import polars as pl, voxpop as vp
from pathlib import Path
words = vp.read(pl.DataFrame({"user": range(4000), "word": ["tea", "milk"] * 2000}), user="user", items="word")
released = vp.Items(max_items_per_user=1).release(words, vp.Budget(epsilon=1, delta=1e-8))
said = {"title": "Words", "dataset": "orders", "purpose": "a list for search", "operator": "A. Person"}
released.with_metadata(**said).save("words", overwrite=True)
assert "A. Person" in Path("words", "report.html").read_text()
"""
ROLES = {
    "texts in a notebook: phrases": TEXTS,
    "user-item pairs: which keys of a GROUP BY may be published": KEYS,
    "a table of clicks: paths of visits": CLICKS,
    "whoever signs off: a report with its purpose and operator": SIGNED,
}


def main() -> None:
    """Measure the roles, and write the table."""
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    rows: list[list[object]] = [["who, and what comes out", "install", "first release", "both", "again"]]
    with tempfile.TemporaryDirectory() as folder:
        own = str(Path(folder, "env", "bin", "python"))
        install = seconds([python, "-m", "venv", "env"], folder)
        install += seconds([own, "-m", "pip", "install", "--quiet", str(ROOT)], folder)
        for number, (role, script) in enumerate(ROLES.items()):
            kernels = str(Path(folder, f"kernels{number}"))
            first, again = (seconds([own, "-c", script], folder, kernels) for _ in range(2))
            rows.append([role, *(f"{each:.0f}" for each in (install, first, install + first, again))])
            print(rows[-1], flush=True)
            shutil.rmtree(Path(folder, "words"), ignore_errors=True)
    note = "Seconds, one run each. Install: an empty environment and `pip install`, once for all rows. The "
    note += "first release "
    note += "compiles the kernels that it needs; again: the same release in a new process. Reading and typing "
    note += "are not counted."
    BENCHMARK.table("Time to a first release", rows, "first_release", note)


def seconds(call: list[str], folder: str, kernels: str = "") -> float:
    """Run a command in a folder, with compiled kernels in a separate folder, and return the seconds."""
    environment = {"HOME": str(Path.home()), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    if kernels:
        environment["NUMBA_CACHE_DIR"] = kernels
    start = time.perf_counter()
    subprocess.run(call, cwd=folder, env=environment, check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
