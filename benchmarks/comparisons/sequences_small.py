"""Cells of few users that are lost to rivals, before and after released numbers determine lengths and prior.

    python -m benchmarks.comparisons.sequences_small

The table contains the five small collections of `sequences_cells`, with epsilon from 0.1 to 1 and eight runs. A second
table gives every rival its best length on the process. Both read exact private numbers, which is permitted only for
research on public data.
"""

from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np

from benchmarks.baselines.chains import MOST_BINS, release_chain
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
from benchmarks.evaluation import as_sequences
from benchmarks.support.benchmark import SEQUENCES, Benchmark
from voxpop.privacy.secret import Secret

BENCHMARK = Benchmark(
    __file__,
    ("sequences_small", "sequences_small_lost", "sequences_small_best_length"),
    SEQUENCES,
    minutes=25,
    seeds="1, 2, ... by run",
)
COLLECTIONS, EPSILONS, RUNS, FAR = (*FEW, PROCESS), (0.1, 0.25, 0.5, 1.0), 8, 0.2
BEFORE = {
    PROCESS: (14, 11, 0.788),
    "msnbc, 7,000": (0, 0, 0.687),
    "msnbc, 2,000": (4, 0, 0.793),
    "irc, 7,000": (13, 0, 0.889),
    "irc, 2,000": (15, 2, 0.946),
}
"""The cells lost, the cells lost by more than a fifth, and the mean ratio of commit 690e4e58, against runs 1 to 3 of
the rivals."""
FEWER, CHOICES = 3, 200
"""The number of runs of the earlier table and of rivals of other lengths, and the number of choices of such runs."""
DRAWN = 4
"""The number of sequences that are drawn from a rival with the true lengths, relative to the number in the data."""
SIGN = np.array([-1 if column.startswith("top") else 1 for column in COLUMNS[:-1]])


def main() -> None:
    """Measure the runs that are not cached, print and write the results."""
    kept: Kept = {}
    wholes = {name: Measure(name) for name in COLLECTIONS}
    for whole in wholes.values():
        kept |= measured(whole)
    rows: list[list[object]] = [
        ["collection", "lost before", "by > 20 %", "ratio before", "lost", "by > 20 %", "ratio", *EPSILONS]
    ]
    lost: list[list[object]] = []
    for name in COLLECTIONS:
        every = [compared(kept, name, epsilon) for epsilon in EPSILONS]
        rows.append([name, *(f"{each:.3f}" if isinstance(each, float) else each for each in BEFORE[name])])
        rows[-1] += summary(every) + [f"{np.exp(np.mean(each[0])):.3f}" for each in every]
        for epsilon, (_, cells) in zip(EPSILONS, every, strict=True):
            lost += [[name, epsilon, *cell, with_true_lengths(wholes[name], epsilon, *cell)] for cell in cells]
    before = np.array([each[:2] for each in BEFORE.values()]).sum(axis=0).tolist()
    rows.append(["all", *before, "", *np.array([each[4:6] for each in rows[1:]], int).sum(axis=0).tolist(), *[""] * 5])
    mean, spread = lost_in_fewer(kept)
    note = (
        f"Of {len(SIGN) * len(EPSILONS)} cells of each collection, those where the mean of {RUNS} runs of the default "
    )
    note += "is more than 2 % worse than that of the best rival, and the geometric mean of the ratio (top k: inverse "
    note += f"hits), by epsilon in the last columns. Rivals have max_length {MAX_LENGTH}; on the processes and clicks "
    note += f"the default chooses from released lengths. Before: commit 690e4e58, {FEWER} runs. If only {FEWER} of the "
    note += f"{RUNS} runs of each model are chosen at random, {mean:.1f} cells are lost, with a standard deviation of "
    note += f"{spread:.1f} ({CHOICES} choices)."
    BENCHMARK.table("Sequences of few users, before and after", rows, "sequences_small", note)
    write_lost(lost)
    best = with_best_length(kept)
    lost = [[epsilon, *cell] for epsilon in EPSILONS for cell in compared(best, PROCESS, epsilon)[1]]
    note = f"Of {len(SIGN) * len(EPSILONS)} cells of {PROCESS}. Each rival has the best of the lengths "
    note += f"{', '.join(map(str, LENGTHS))}, chosen by the truth for each cell by {FEWER} runs; that of the default "
    note += "follows from released numbers."
    found = [HEAD, *(lost or [["none", *[""] * (len(HEAD) - 1)]])]
    BENCHMARK.table("Cells that are lost to rivals of the best length", found, "sequences_small_best_length", note)


HEAD: list[object] = ["epsilon", "cell", "default", "best rival", "which", "worse by", "standard error of that"]


def write_lost(lost: list[list[object]]) -> None:
    """Write the lost cells, and the rivals with the true lengths in the same cells."""
    # Smaller errors are better, but more hits are better.
    triples = [(_sign(cell), *(float(str(cell[at])) for at in (3, 4, -1))) for cell in lost if cell[-1]]
    worse = sum(sign * (true - rival) > 0 for sign, _, rival, true in triples)
    behind = [sign * (ours / true - 1) for sign, ours, _, true in triples]
    note = f"Means of {RUNS} runs. Last column: the same rival, with the same noise, but its sequences end as those of "
    note += f"the data do (the first {MAX_LENGTH} symbols; {DRAWN} times as many are drawn, for less error). In "
    note += f"{worse} of the {len(lost)} cells this makes the rival worse, because its wrong lengths help it "
    note += (
        f"there. Against these rivals {sum(each > MOST_BEHIND for each in behind)} of the cells are lost, by at most "
    )
    note += f"{100 * max(behind, default=0.0):.1f} %."
    head = ["collection", *HEAD, "that rival with true lengths"]
    BENCHMARK.table("Cells of few users that are lost", [head, *lost], "sequences_small_lost", note)


def _sign(cell: list[object]) -> int:
    return int(SIGN[COLUMNS.index(str(cell[2]))])


def with_true_lengths(whole: Measure, epsilon: float, cell: str, *found: str) -> str:
    """Return the mean figure of the best rival of a lost cell with the true lengths.

    The text is empty if the rival is not a chain, and in the cell of the lengths themselves.
    """
    cells, rival = BENCHMARK.cells(), found[2]
    gram = 1 if rival == "unigrams" else int(rival.split()[1][0]) if rival.startswith("fixed") else 0
    if not gram or cell == COLUMNS[-2]:
        return ""
    key = [whole.name, epsilon, f"{rival}, true lengths"]
    runs = [cells.get([*key, run], partial(true_lengths, whole, gram, epsilon, run)) for run in range(1, RUNS + 1)]
    return f"{np.mean(runs, axis=0)[COLUMNS.index(cell)]:.3f}"


def true_lengths(whole: Measure, gram: int, epsilon: float, run: int) -> list[float]:
    """Return the figures of a chain from which sequences of the true lengths are drawn."""
    size = len(whole.alphabet)
    chain = release_chain(whole.cut, size, MAX_LENGTH, gram, Fraction(epsilon), Secret.from_seed(run))
    # float64 (contexts, symbols), without ends.
    shares = chain.counts.reshape(-1, size + 1)[:, :size].astype(np.float64)
    sums = np.cumsum(shares / np.maximum(shares.sum(axis=1, keepdims=True), 1.0), axis=1)
    sizes = np.repeat(np.diff(np.flatnonzero(whole.cut == size), prepend=-1) - 1, DRAWN)
    rng, symbols = np.random.default_rng(run), np.full((sizes.size, MAX_LENGTH), size, np.int32)
    contexts, before = sums.shape[0], np.full(sizes.size, sums.shape[0] - 1)
    for place in range(MAX_LENGTH):
        going = np.flatnonzero(sizes > place)
        chosen = (rng.random(going.size)[:, None] >= sums[before[going]]).sum(axis=1)
        symbols[going, place] = np.minimum(chosen, size - 1)
        # The last symbols as digits in base `size + 1`, as in the chain.
        before[going] = (before[going] * (size + 1) + symbols[going, place]) % contexts
    data = as_sequences(symbols[np.arange(MAX_LENGTH) < sizes[:, None]], sizes, size)
    return [*whole.errors(data, 1.0 / DRAWN), *whole.others(data), float(sizes.size / DRAWN)]


def lost_in_fewer(kept: Kept) -> tuple[float, float]:
    """Return the mean and the standard deviation of the number of lost cells if only `FEWER` of the runs are known."""
    rng, counts = np.random.default_rng(1), []
    for _ in range(CHOICES):
        chosen: Kept = {
            key: [runs[run] for run in rng.choice(len(runs), FEWER, replace=False)] for key, runs in kept.items()
        }
        counts.append(sum(len(compared(chosen, *each)[1]) for each in product(COLLECTIONS, EPSILONS)))
    return float(np.mean(counts)), float(np.std(counts, ddof=1))


def measured(whole: Measure) -> Kept:
    """Return the figures of every run of one collection, of the process at every length."""
    cells, name, found = BENCHMARK.cells(), whole.name, Kept()
    models = [each for each in RIVALS if each != "fixed 4-grams" or (len(whole.alphabet) + 1) ** 4 <= MOST_BINS]
    given = [("default", MAX_LENGTH), *product(models, LENGTHS if name == PROCESS else (MAX_LENGTH,))]
    for epsilon, (model, length), run in product(EPSILONS, given, range(1, RUNS + 1)):
        label = model if length == MAX_LENGTH else f"{model}, {length}"
        if length != MAX_LENGTH and run > FEWER:
            continue
        figures = cells.get([name, epsilon, label, run], partial(whole.of, model, epsilon, run, length))
        found.setdefault((name, epsilon, label), []).append(figures)
    return found


def with_best_length(kept: Kept) -> Kept:
    """Return the figures of the process, of every rival at its best length by cell, by the means over runs."""
    found = {key: runs for key, runs in kept.items() if key[0] == PROCESS and key[2] == "default"}
    for epsilon, model in product(EPSILONS, RIVALS):
        labels = [model if length == MAX_LENGTH else f"{model}, {length}" for length in LENGTHS]
        every = np.array([kept[PROCESS, epsilon, label][:FEWER] for label in labels])
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
    lost: list[list[object]] = []
    for at in np.flatnonzero(behind > MOST_BEHIND).tolist():
        both = [np.array(kept[name, epsilon, model])[:, at] for model in ("default", models[best[at]])]
        error = np.sqrt(sum(each.var(ddof=1) / each.size for each in both)) / theirs[at]
        lost.append([COLUMNS[at], f"{ours[at]:.3f}", f"{theirs[at]:.3f}", models[best[at]]])
        lost[-1] += [f"{100 * behind[at]:.1f} %", f"{100 * error:.1f} %"]
    return SIGN * np.log(ours / theirs), lost


def summary(every: list[tuple[np.ndarray, list[list[object]]]]) -> list[object]:
    """Return the number of lost cells, the number of cells lost by more than a fifth, and the mean ratio."""
    far = [float(str(cell[-2]).split()[0]) > 100 * FAR for _, lost in every for cell in lost]
    return [len(far), sum(far), f"{np.exp(np.mean([each for each, _ in every])):.3f}"]


if __name__ == "__main__":
    main()
