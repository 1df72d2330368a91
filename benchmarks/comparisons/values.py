"""The total value of released phrases if the caller gives a value for each length.

    python -m benchmarks.comparisons.values

Cells that the same code has measured are cached in `out/cells`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import voxpop as vp
from benchmarks.support.benchmark import NGRAMS, Benchmark
from benchmarks.support.cells import Cells
from benchmarks.support.common import chat, posts
from voxpop.engine.local.corpus import LocalCorpus

BENCHMARK = Benchmark(__file__, ("values",), NGRAMS, minutes=4)

ENDS = ([0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 10, 10], [0, 0, 0, 0, 1], [0, 0, 0, 1])
"""Values that favour the longest phrases. They are also compared with the published algorithm. Posts use all values
except the last."""
WANTED = (*ENDS, [0, 0, 1], [0, 1], [1, 1, 4, 4], [1, 1, 1, 1, 10], [1, 4, 1, 1], [10, 1, 1, 1])
RATIOS = {"chat": (0.7, 0.8, 0.9, 1.0, 1.15, 1.3), "posts": (0.7, 0.8, 1.0, 1.15)}
CORPORA: dict[str, tuple[Callable[[], LocalCorpus], int]] = {"chat": (chat, 5), "posts": (posts, 1)}
OURS = {"all the same": False, "`length_weights=`": True}
"""Whether values are given."""
LIMITS = {"chat": (100, 300), "posts": (100, 500)}
"""The limits of the published algorithm, which are the usual limit and its best limit."""
BEST = "published, at its best"


def main() -> None:
    """Measure, print and write the results."""
    cells = BENCHMARK.cells()
    rows: list[list[object]] = [["collection", "values", *OURS, "published, equal", BEST, "its ratio", "its limit"]]
    for name, (corpus, runs) in CORPORA.items():
        read = corpus()
        for values in WANTED if name == "chat" else ENDS:
            rows.append([name, ", ".join(map(str, values)), *compared(cells, name, read, values, runs)])
    note = "Sum of the values of released phrases, relative to the default, which counts all phrases alike; epsilon 4, "
    note += "delta 1e-7, as many lengths as values; means of 5 runs on the chat, of 1 on "
    note += "the posts. "
    for name, ratios in RATIOS.items():
        note += f"Published on the {name}: of the ratios {', '.join(map(str, ratios))} and the limits "
        note += f"{' and '.join(map(str, LIMITS[name]))}, found with the private data; equal budgets at limit 100. "
    BENCHMARK.table("Values by length", rows, "values", note.strip())


def compared(cells: Cells, name: str, corpus: LocalCorpus, values: Sequence[float], runs: int) -> list[object]:
    """Return the row of one collection and one list of values."""
    key = [name, " ".join(map(str, values))]
    ours = [
        cells.get(
            [*key, label],
            lambda given=given: [
                worth_of(corpus, values, runs, vp.NGrams(len(values), length_weights=values if given else None))
            ],
        )[0]
        for label, given in OURS.items()
    ]
    cut = [f"{each / ours[0]:.2f}" for each in ours]
    if list(values) not in (ENDS if name == "chat" else ENDS[:-1]):
        return [*cut, "", "", "", ""]
    worth = {
        (ratio, limit): cells.get(
            [*key, f"published {ratio:g}, limit {limit}"],
            lambda ratio=ratio, limit=limit: [
                worth_of(corpus, values, runs, vp.papers.DPNE(len(values), limit, ratio=ratio))
            ],
        )[0]
        for ratio in RATIOS[name]
        for limit in LIMITS[name]
    }
    best = max(worth, key=lambda each: worth[each])
    return [*cut, f"{worth[1.0, 100] / ours[0]:.2f}", f"{worth[best] / ours[0]:.2f}", f"{best[0]:g}", str(best[1])]


def worth_of(corpus: LocalCorpus, worth: Sequence[float], runs: int, ngrams: Any) -> float:
    """Return the mean value of several releases."""
    releases = [ngrams.release(corpus, vp.Budget(4, 1e-7)) for _ in range(runs)]
    return float(np.mean([sum(worth[len(gram) - 1] for gram in release) for release in releases]))


if __name__ == "__main__":
    main()
