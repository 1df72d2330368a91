"""DPSU's Figures 1 and 4 to 11 on half a million posts, with words, pairs and triples of words by epsilon and by limit.

    python -m benchmarks.papers.dpsu_figures

Cells that the same code has measured are cached in `out/cells`. Figure 4 reads exact private numbers, which is
permitted only for research on public data.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

import voxpop as vp
from benchmarks.baselines.all_grams import AllGrams
from benchmarks.evaluation import private_user_counts
from benchmarks.papers.algorithm8 import released_not_private
from benchmarks.papers.dpsu_table2 import CELLS
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.cells import Cells
from benchmarks.support.common import BUDGET, posts
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.kernels.weigh import gather_distinct

BENCHMARK = Benchmark(__file__, ("dpsu_figures",), SET_UNION, minutes=14)

LIMITS = (1, 10, 50, 100, 200)
EPSILONS = (1, 2, 3, 4, 5)
COARSE = {"limit": (1, 10, 100), "epsilon": (1, 3, 5)}
"""Axes for vocabularies with longer grams, for which releases take ten times as long."""
LIMIT = 100
NOT_PRIVATE = "Policy Gaussian l1 (NOT PRIVATE)"
ALGORITHMS: dict[str, Callable[[int], Any] | None] = {
    **{name.partition(" (")[0]: algorithm for name, algorithm in CELLS.items()},
    NOT_PRIVATE: None,
    "default": vp.Items,
}
"""The algorithms of the cells, with the paper's accounting, Algorithm 8 with alpha 5 as in the paper, and Voxpop's
default."""


@dataclass(frozen=True)
class Figure:
    """One figure of the paper, with the lengths of its items and the parameter that varies."""

    number: int
    lengths: tuple[int, ...]
    axis: str

    @property
    def values(self) -> tuple[int, ...]:
        """The values on the axis."""
        if self.lengths != (1,):
            return COARSE[self.axis]
        return EPSILONS if self.axis == "epsilon" else LIMITS

    @property
    def algorithms(self) -> list[str]:
        """The compared algorithms. Algorithm 8, which is not private, is compared only on words."""
        return [name for name in ALGORITHMS if self.lengths == (1,) or name != NOT_PRIVATE]

    def point(self, value: int) -> tuple[int, vp.Budget]:
        """Return the limit and the budget at a value of the axis."""
        if self.axis == "epsilon":
            return LIMIT, vp.Budget(value, BUDGET.delta)
        return value, BUDGET


NAMES = {(1,): "words", (2,): "bigrams", (3,): "trigrams", (1, 2): "words and bigrams", (1, 2, 3): "words to trigrams"}
FIGURES = (
    Figure(1, (1,), "epsilon"),
    Figure(5, (1,), "limit"),
    Figure(6, (2,), "limit"),
    Figure(7, (2,), "epsilon"),
    Figure(8, (3,), "limit"),
    Figure(9, (3,), "epsilon"),
    Figure(10, (1, 2), "limit"),
    Figure(11, (1, 2, 3), "limit"),
)


def main() -> None:
    """Measure and write the results."""
    cells = BENCHMARK.cells()
    slope = rank_and_frequency()
    note = "reddit_posts, delta e^-10; one run each, whose deviation is below half a percent from 10,000 items on "
    note += "(benchmarks/results/dpsu_table2.md). All lines but the last have the paper's accounting. "
    note += f"Figure 4: the number of users falls with rank like rank^{slope:.2f} (ranks 10 to 10,000)."
    rows: list[list[object]] = [["", *(f"value {place + 1}" for place in range(len(LIMITS)))]]
    for figure in FIGURES:
        counts = {name: [counted(cells, figure, name, value) for value in figure.values] for name in figure.algorithms}
        fixed = f"limit {LIMIT}" if figure.axis == "epsilon" else "epsilon 3"
        title = f"Figure {figure.number}: {NAMES[figure.lengths]}, {fixed}, by {figure.axis}"
        blank = [""] * (len(LIMITS) - len(figure.values))
        rows.append([title, *figure.values, *blank])
        rows += [[name, *(f"{count:,}" for count in row), *blank] for name, row in counts.items()]
        BENCHMARK.table("DPSU's Figures 1 and 5 to 11 on reddit_posts", rows, "dpsu_figures", note)


def counted(cells: Cells, figure: Figure, name: str, value: int) -> int:
    """Return the number of items that one algorithm releases at one point of a figure."""
    limit, budget = figure.point(value)
    corpus = corpus_of(figure.lengths)
    algorithm = ALGORITHMS[name]

    def measure() -> list[float]:
        if algorithm is None:
            return [released_not_private(corpus, budget, limit)]
        return [len(algorithm(limit).release(corpus, budget))]

    return int(cells.get([NAMES[figure.lengths], name, f"limit {limit}", f"epsilon {budget.epsilon:g}"], measure)[0])


def rank_and_frequency() -> float:
    """Return the slope of Figure 4, of the logarithm of a word's number of users against the logarithm of its rank."""
    counts = np.sort(private_user_counts(posts()))[::-1]
    ranks = np.unique(np.geomspace(1, counts.size, 200).astype(np.int64))
    middle = ranks[(ranks >= 10) & (ranks <= 10_000)]
    return float(np.polyfit(np.log(middle), np.log(counts[middle - 1]), 1)[0])


@lru_cache(maxsize=1)
def all_grams() -> AllGrams:
    """Return all grams of up to three words."""
    return AllGrams.of(posts(), 3)


@lru_cache(maxsize=1)
def corpus_of(lengths: tuple[int, ...]) -> LocalCorpus:
    """Return a corpus with the grams of these lengths as items. The name of each item is a number of eight digits."""
    if lengths == (1,):
        return posts()
    held = all_grams().holdings(list(lengths))
    everyone = np.arange(held.user_key.size)
    seen = np.full(held.size, -1, np.int32)
    items, starts = gather_distinct(held.ids, held.user_start, everyone, np.empty(0, np.uint8), seen, 0)
    digits = (np.arange(held.size)[:, None] // 10 ** np.arange(7, -1, -1) % 10 + ord("0")).astype(np.uint8)
    ends = pa.py_buffer(np.arange(0, 8 * held.size + 1, 8))
    names = pa.LargeStringArray.from_buffers(held.size, ends, pa.py_buffer(digits))
    return LocalCorpus(items, starts, held.user_key, names, "items")


if __name__ == "__main__":
    main()
