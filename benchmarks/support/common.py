"""What the benchmarks share: data, a corpus tokenised once, tables on screen and on disk."""

import csv
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

import voxpop as vp
from benchmarks.support.engines import load_engine, read_engine
from voxpop.engine.local.corpus import LocalCorpus

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("VOXPOP_DATA", ROOT.parent / "shared" / "data"))
RESULTS = ROOT / "benchmarks" / "results"
OUT = ROOT / "out"
BUDGET = vp.Budget(epsilon=3, delta=float(np.exp(-10)))


def posts() -> LocalCorpus:
    """Return the posts as words, tokenised once."""
    return _kept("reddit", "reddit_posts.parquet", text="text")


def chat() -> LocalCorpus:
    """Return the messages of a chat as words: few users, each with many."""
    return _kept("irc", "ubuntu_irc.parquet", text="text")


def clicks() -> LocalCorpus:
    """Return MSNBC: the kinds of pages that visitors saw, in order."""
    return _kept("msnbc", "msnbc.parquet", sequence="sequence")


def _kept(name: str, file: str, **column: str) -> LocalCorpus:
    folder = OUT / f"{name}.corpus"
    if not folder.exists():
        read_engine(DATA / file, user="user", **column).save(folder)
    return load_engine(folder)


def joined(corpus: LocalCorpus, by: int) -> LocalCorpus:
    """Return the same texts with every `by` users made one: fewer and longer users."""
    first = np.arange(0, corpus.user_key.size, by)
    return replace(
        corpus,
        user_start=np.append(corpus.user_start[first], corpus.user_start[-1]),
        user_key=np.ascontiguousarray(corpus.user_key[first]),
    )


def by_length(release: vp.Release, longest: int) -> NDArray[np.int64]:
    """Return how many grams of each length were released."""
    return np.bincount(release.grams["length"].to_numpy(), minlength=longest + 1)[1:]


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
    with (RESULTS / f"{name}.csv").open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(cells)


def picture(
    name: str, series: dict[str, tuple[Sequence[float], Sequence[float]]], axes: tuple[str, str], log: str = ""
) -> None:
    """Draw lines, and write them as PNG; `log` names the axes with a logarithmic scale, "default" stands out."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    many = len(series) > 7
    figure, plot = plt.subplots(figsize=(10, 5) if many else (7, 4.5), constrained_layout=True)
    for number, (label, (x, y)) in enumerate(series.items()):
        style = (
            {"color": "black", "linewidth": 2.5}
            if label == "default"
            else {"linestyle": ("-", "--", ":")[number // 9 % 3]}
        )
        plot.plot(x, y, marker="o", markersize=3, label=label, **style)
    if "x" in log:
        plot.set_xscale("log")
    if "y" in log:
        plot.set_yscale("log")
    plot.set_xlabel(axes[0])
    plot.set_ylabel(axes[1])
    plot.grid(alpha=0.3)
    if many:
        plot.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))
    else:
        plot.legend(fontsize=8)
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / f"{name}.png", dpi=110)
    plt.close(figure)
