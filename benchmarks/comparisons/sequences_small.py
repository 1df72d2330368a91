"""Sequences of few users: cells lost before and after lengths and prior follow from released numbers, three runs each.

    python -m benchmarks.comparisons.sequences_small

The five small collections of `sequences_cells`, epsilon from 0.1 to 1. A second table gives every rival its best length
on the process. Both read private truth, for research on public data.
"""

from functools import partial
from itertools import product

import numpy as np

from benchmarks.baselines.chains import MOST_BINS
from benchmarks.comparisons.sequences_cells import (
    COLUMNS,
    FEW,
    LENGTHS,
    MAX_LENGTH,
    MOST_BEHIND,
    PROCESS,
    RIVALS,
    Kept,
    Measure,
)
from benchmarks.support.benchmark import SEQUENCES, Benchmark

BENCHMARK = Benchmark(
    __file__,
    ("sequences_small", "sequences_small_lost", "sequences_small_best_length"),
    SEQUENCES,
    minutes=10,
    seeds="1, 2, 3 by run",
)
COLLECTIONS, EPSILONS, RUNS, FAR = (PROCESS, *FEW), (0.1, 0.25, 0.5, 1.0), 3, 0.2
BEFORE = {
    PROCESS: (14, 11, 0.788),
    "msnbc, 7,000": (0, 0, 0.687),
    "msnbc, 2,000": (4, 0, 0.793),
    "irc, 7,000": (13, 0, 0.889),
    "irc, 2,000": (15, 2, 0.946),
}
"""Cells lost, lost by more than a fifth, and mean ratio of commit 690e4e58, against the same runs of the rivals."""
SIGN = np.array([-1 if column.startswith("top") else 1 for column in COLUMNS[:-1]])


def main() -> None:
    """Measure the runs that are not cached, print and write the results."""
    kept: Kept = {}
    for name in COLLECTIONS:
        kept |= measured(name)
    rows: list[list[object]] = [
        ["collection", "lost before", "by > 20 %", "ratio before", "lost", "by > 20 %", "ratio", *EPSILONS]
    ]
    lost: list[list[object]] = []
    for name in COLLECTIONS:
        every = [compared(kept, name, epsilon) for epsilon in EPSILONS]
        rows.append([name, *(f"{each:.3f}" if isinstance(each, float) else each for each in BEFORE[name])])
        rows[-1] += summary(every) + [f"{np.exp(np.mean(each[0])):.3f}" for each in every]
        lost += [[name, epsilon, *cell] for epsilon, each in zip(EPSILONS, every, strict=True) for cell in each[1]]
    before = np.array([each[:2] for each in BEFORE.values()]).sum(axis=0).tolist()
    rows.append(["all", *before, "", *np.array([each[4:6] for each in rows[1:]], int).sum(axis=0).tolist(), *[""] * 5])
    note = (
        f"Of {len(SIGN) * len(EPSILONS)} cells of each collection, those where the mean of {RUNS} runs of the default "
    )
    note += "is more than 2 % worse than that of the best rival, and the geometric mean of the ratio (top k: inverse "
    note += f"hits), by epsilon in the last columns. Rivals have max_length {MAX_LENGTH}; on the processes and clicks "
    note += "the default chooses from released lengths. Before: commit 690e4e58, against the same rivals."
    BENCHMARK.table("Sequences of few users, before and after", rows, "sequences_small", note)
    head: list[object] = ["collection", "epsilon", "cell", "default", "best rival", "which", "worse by"]
    note = "Each mean has a standard error of some percent: `sequences_cells_lost` has more runs."
    BENCHMARK.table("Cells of few users that are lost", [head, *lost], "sequences_small_lost", note)
    best = with_best_length(kept)
    lost = [[epsilon, *cell] for epsilon in EPSILONS for cell in compared(best, PROCESS, epsilon)[1]]
    note = f"Of {len(SIGN) * len(EPSILONS)} cells of {PROCESS}. Each rival has the best of the lengths "
    note += f"{', '.join(map(str, LENGTHS))}, chosen by the truth for each cell; that of the default follows from "
    note += "released numbers."
    found = [head[1:], *(lost or [["none", *[""] * 5]])]
    BENCHMARK.table("Cells that are lost to rivals of the best length", found, "sequences_small_best_length", note)


def measured(name: str) -> Kept:
    """Return the figures of every run of one collection, of the process at every length."""
    cells, whole, found = BENCHMARK.cells(), Measure(name), Kept()
    models = [each for each in RIVALS if each != "fixed 4-grams" or (len(whole.alphabet) + 1) ** 4 <= MOST_BINS]
    given = [("default", MAX_LENGTH), *product(models, LENGTHS if name == PROCESS else (MAX_LENGTH,))]
    for epsilon, (model, length), run in product(EPSILONS, given, range(1, RUNS + 1)):
        label = model if length == MAX_LENGTH else f"{model}, {length}"
        figures = cells.get([name, epsilon, label, run], partial(whole.of, model, epsilon, run, length))
        found.setdefault((name, epsilon, label), []).append(figures)
    return found


def with_best_length(kept: Kept) -> Kept:
    """Return the figures of the process, of every rival at its best length by cell, by the means over runs."""
    found = {key: runs for key, runs in kept.items() if key[0] == PROCESS and key[2] == "default"}
    for epsilon, model in product(EPSILONS, RIVALS):
        labels = [model if length == MAX_LENGTH else f"{model}, {length}" for length in LENGTHS]
        every = np.array([kept[PROCESS, epsilon, label] for label in labels])
        best = (np.append(SIGN, 1) * every.mean(axis=1)).argmin(axis=0)
        found[PROCESS, epsilon, model] = every[best, :, np.arange(best.size)].T.tolist()
    return found


def compared(kept: Kept, name: str, epsilon: float) -> tuple[np.ndarray, list[list[object]]]:
    """Return the logarithms of the ratios of all cells to the best rival, and the cells that are lost."""
    models = [model for model in RIVALS if (name, epsilon, model) in kept]
    rivals = np.array([np.mean(kept[name, epsilon, model], axis=0)[:-1] for model in models])
    ours = np.mean(kept[name, epsilon, "default"], axis=0)[:-1]
    best = (SIGN * rivals).argmin(axis=0)
    theirs = rivals[best, np.arange(best.size)]
    behind = SIGN * (ours / theirs - 1)
    lost: list[list[object]] = [
        [COLUMNS[at], f"{ours[at]:.3f}", f"{theirs[at]:.3f}", models[best[at]], f"{100 * behind[at]:.1f} %"]
        for at in np.flatnonzero(behind > MOST_BEHIND)
    ]
    return SIGN * np.log(ours / theirs), lost


def summary(every: list[tuple[np.ndarray, list[list[object]]]]) -> list[object]:
    """Return the number of cells lost, of those lost by more than a fifth, and the mean ratio."""
    far = [float(str(cell[-1]).split()[0]) > 100 * FAR for _, lost in every for cell in lost]
    return [len(far), sum(far), f"{np.exp(np.mean([each for each, _ in every])):.3f}"]


if __name__ == "__main__":
    main()
