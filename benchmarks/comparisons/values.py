"""What phrases are worth when the caller says what one of each length is worth.

python -m benchmarks.comparisons.values
"""

from collections.abc import Callable, Sequence

import numpy as np

import voxpop as vp
from benchmarks.support.common import chat, posts, table

WANTED = ([0, 1], [0, 0, 1], [0, 0, 0, 1], [1, 1, 4, 4], [1, 1, 1, 1, 10], [1, 4, 1, 1], [10, 1, 1, 1])
RATIOS = (0.7, 0.8, 0.9, 1.0, 1.15, 1.3, 1.6)
CORPORA: dict[str, tuple[Callable[[], vp.Corpus], int]] = {"chat": (chat, 5), "posts": (posts, 1)}


def main() -> None:
    """Measure, print, write."""
    rows: list[list[object]] = [["collection", "values", "all the same", "best ratio", "its ratio", "`values=`"]]
    for name, (corpus, runs) in CORPORA.items():
        read = corpus()
        for values in WANTED:
            worth = {ratio: worth_of(read, values, runs, budgets=ratio) for ratio in RATIOS}
            best = max(worth, key=lambda ratio: worth[ratio])
            plain, valued = worth_of(read, values, runs), worth_of(read, values, runs, values=values)
            listed = ", ".join(map(str, values))
            rows.append([name, listed, "1", f"{worth[best] / plain:.2f}", f"{best:g}", f"{valued / plain:.2f}"])
            print(*rows[-1], flush=True)
    note = "Sum of the values of what is released, over the same with budgets that count all phrases alike; epsilon 4, "
    note += 'delta 1e-7, as many lengths as values. "Best ratio": the best of seven, found with the private data.'
    table("Values by length", rows, "values", note)


def worth_of(corpus: vp.Corpus, worth: Sequence[float], runs: int, **fields: object) -> float:
    """Return the mean value of some releases."""
    ngrams = vp.NGrams(max_length=len(worth), **fields)
    releases = [ngrams.release(corpus, vp.Budget(4, 1e-7)) for _ in range(runs)]
    return float(np.mean([sum(worth[len(gram) - 1] for gram in release) for release in releases]))


if __name__ == "__main__":
    main()
