"""Coverage of the intervals of sequences: how many contain the true answer, for four queries and three collections.

    python -m benchmarks.comparisons.sequences_intervals

The truth is the first `max_length` symbols of each sequence, because a model describes these. Reads private truth, for
research on public data.
"""

from functools import partial

import numpy as np
import polars as pl

import voxpop as vp
from benchmarks.comparisons.sequences_cells import PROCESS, collection
from benchmarks.evaluation import SequenceData, private_sequences
from benchmarks.support.benchmark import SEQUENCES, Benchmark
from voxpop.kernels.arrays import Floats
from voxpop.mechanisms.sequences.drawing import Sessions
from voxpop.mechanisms.sequences.queries import commonest_runs, containing, followers, reaching

BENCHMARK = Benchmark(
    __file__,
    ("sequences_intervals",),
    SEQUENCES,
    minutes=4,
    seeds="1, 2, ... by release",
)
COLLECTIONS, EPSILONS, RELEASES, LEVEL = (PROCESS, "msnbc, 7,000", "irc, 7,000"), (0.25, 1.0), 8, 0.9
FUNNELS, STEPS, PATHS, COMMON = 20, 3, 20, 0.01
"""Number of funnels and their steps; number of paths; the share of sequences from which a symbol is common."""
QUERIES = ("starting", "transitions", "lengths", "funnels", "transitions of common symbols", "paths")


def main() -> None:
    """Measure the releases that are not cached, print and write the results."""
    cells, rows = BENCHMARK.cells(), [["collection", "epsilon", *QUERIES]]
    for name in COLLECTIONS:
        corpus, alphabet = collection(name)
        truth = private_sequences(corpus, alphabet)
        release = partial(_coverage, corpus, alphabet, truth)
        for epsilon in EPSILONS:
            every = np.array(
                [cells.get([name, epsilon, run], partial(release, epsilon, run)) for run in range(1, RELEASES + 1)]
            )
            errors = every.std(axis=0, ddof=1) / np.sqrt(RELEASES)
            shown = [f"{mean:.2f} ± {error:.2f}" for mean, error in zip(every.mean(axis=0), errors, strict=True)]
            rows.append([name, str(epsilon), *shown])
    note = f"Mean share of intervals at level {LEVEL} that contain the true answer, over {RELEASES} releases, and its "
    note += f"standard error. Funnels: the last step of {FUNNELS} random funnels of {STEPS} symbols that start in real "
    note += f"sequences. Common symbols: those in at least {COMMON:.0%} of the sequences. Paths: the {PATHS} most "
    note += "frequent runs of 3 symbols. Intervals cover the noise, not the model."
    BENCHMARK.table("Coverage of the intervals of sequences", rows, "sequences_intervals", note)


def _coverage(
    corpus: vp.Corpus, alphabet: tuple[str, ...], truth: SequenceData, epsilon: float, run: int
) -> list[float]:
    """Return the share of correct intervals of one release by query."""
    model = vp.Sequences(alphabet=alphabet).release(corpus, vp.Budget(epsilon), seed=run)
    size, real = len(alphabet), cut(truth, model.max_length)
    firsts = np.bincount(real.symbols[real.starts[:-1]], minlength=size) / real.size
    sizes = np.bincount(real.sizes, minlength=model.max_length + 1)[1:] / real.size
    sampler = model._sampler
    after = followers(sampler, real, number=np.arange(size + 1), rows=size).reshape(size, size + 1)
    users = containing(real, [(symbol,) for symbol in range(size)], size)
    by_name = model.starting(LEVEL).with_columns(
        pl.col("symbol").replace_strict(alphabet, range(size), return_dtype=pl.Int64)
    )
    transitions = right(model.transitions(LEVEL), after.ravel()).reshape(size, size + 1)
    runs = commonest_runs(real, 3, PATHS, size)
    paths = model._queries.answer(lambda _, sessions: containing(sessions, runs, size), LEVEL)
    return [
        float(right(by_name.sort("symbol"), firsts).mean()),
        float(transitions[users > 0].mean()),
        float(right(model.lengths(LEVEL), sizes).mean()),
        _funnels(model, real),
        float(transitions[users >= COMMON].mean()),
        float(right(paths, containing(real, runs, size)).mean()),
    ]


def _funnels(model: vp.SequenceModel, real: Sessions) -> float:
    """Return the share of correct intervals of the last step of funnels along real sequences."""
    rng, correct = np.random.default_rng(1), []
    long = np.flatnonzero(real.sizes >= STEPS)
    for which in rng.choice(long, FUNNELS):
        places = np.sort(rng.choice(int(real.sizes[which]), STEPS, replace=False))
        steps = real.symbols[real.starts[which] + places]
        exact = reaching(model._sampler, real, steps=steps, within=model.max_length)
        found = model.funnel([model.alphabet[step] for step in steps.tolist()], level=LEVEL)
        correct.append(right(found, exact)[-1])
    return float(np.mean(correct))


def cut(data: SequenceData, length: int) -> Sessions:
    """Return the first symbols of each sequence."""
    sizes = np.diff(data.starts)
    place = np.arange(data.symbols.size) - np.repeat(data.starts[:-1], sizes)
    starts = np.concatenate([[0], np.cumsum(np.minimum(sizes, length))]).astype(np.int64)
    return Sessions(data.symbols[place < length], starts)


def right(answers: pl.DataFrame, exact: Floats) -> np.ndarray:
    """Return whether each interval contains the exact number."""
    return (answers["low"].to_numpy() <= exact) & (exact <= answers["high"].to_numpy())


if __name__ == "__main__":
    main()
