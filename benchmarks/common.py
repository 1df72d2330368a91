"""What the benchmarks share: data, a corpus tokenised once, tables on screen and on disk."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np

import voxpop as vp

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("VOXPOP_DATA", ROOT.parent / "shared" / "data"))
RESULTS = ROOT / "benchmarks" / "results"
OUT = ROOT / "out"
BUDGET = vp.Budget(epsilon=3, delta=float(np.exp(-10)))


def posts() -> vp.Corpus:
    """Return the posts as words, tokenised once."""
    folder = OUT / "reddit.corpus"
    if not folder.exists():
        vp.read(DATA / "reddit_posts.parquet", user="user", text="text").save(folder)
    return vp.load_corpus(folder)


def seconds(work: Callable[[], object], runs: int = 3) -> float:
    """Return the median time of some runs."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return median(times)


def table(title: str, rows: Sequence[Sequence[object]], name: str, note: str = "") -> None:
    """Print a table whose first row is its head, and write it as Markdown and CSV."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = ["| " + " | ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    text = "\n".join([f"# {title}", "", *lines, "", note]).rstrip() + "\n"
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text)
    (RESULTS / f"{name}.csv").write_text("\n".join(",".join(f'"{c}"' for c in row) for row in cells) + "\n")


def picture(name: str, series: dict[str, tuple[Sequence[float], Sequence[float]]], axes: tuple[str, str]) -> None:
    """Draw lines, and write them as PNG."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, plot = plt.subplots(figsize=(7, 4.5), constrained_layout=True)
    for label, (x, y) in series.items():
        plot.plot(x, y, marker="o", markersize=3, label=label)
    plot.set_xlabel(axes[0])
    plot.set_ylabel(axes[1])
    plot.grid(alpha=0.3)
    plot.legend(fontsize=8)
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / f"{name}.png", dpi=110)
