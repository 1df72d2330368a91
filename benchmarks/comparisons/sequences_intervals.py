"""The share of intervals of sequences that contain the true answer, on public logs and on a generated log.

    python -m benchmarks.comparisons.sequences_intervals

The truth is the first `max_length` symbols of each sequence, because a model describes these. The program reads exact
private numbers, which is permitted only for research on public data.
"""

from functools import partial

import numpy as np
import polars as pl

import voxpop as vp
from benchmarks.comparisons.sequences_cells import PROCESS, collection
from benchmarks.evaluation import SequenceData, private_sequences
from benchmarks.support.benchmark import SEQUENCES, Benchmark
from benchmarks.support.engines import read_engine
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.kernels.arrays import Floats
from voxpop.mechanisms.sequences.drawing import Sessions
from voxpop.mechanisms.sequences.queries import commonest_runs, containing, followers, last_symbols, reaching

BENCHMARK = Benchmark(
    __file__,
    ("sequences_intervals",),
    SEQUENCES,
    minutes=7,
    seeds="1, 2, ... by release",
)
FORMS = "forms"
"""A generated log of forms with steps back. The end of a visit depends on more than the latest symbols."""
WITHHELD = ("msnbc, 2,000", "irc, 2,000")
"""Samples that were not used to choose the computation of intervals. All other collections were used for this
choice."""
COLLECTIONS = (PROCESS, "msnbc, 7,000", "irc, 7,000", FORMS, *WITHHELD)
EPSILONS, RELEASES, LEVEL = (0.1, 0.25, 1.0), 4, 0.9
FUNNELS, STEPS, PATHS, COMMON, FORMS_FILLED = 20, 3, 20, 0.01, 5_000
"""The number of funnels and of their steps, the number of paths, the smallest share of a common symbol, and the number
of visits."""
QUERIES = ("starting", "ending", "transitions", "lengths", "funnels", "paths")
WIDTHS = ("width of transitions", "of funnels", "of paths")


def main() -> None:
    """Measure the releases that are not cached, print and write the results."""
    cells, rows = BENCHMARK.cells(), [["collection", "epsilon", *QUERIES, *WIDTHS]]
    for name in COLLECTIONS:
        corpus, alphabet = forms() if name == FORMS else collection(name)
        truth = private_sequences(corpus, alphabet)
        release = partial(_coverage, corpus, alphabet, truth)
        for epsilon in EPSILONS:
            every = np.array(
                [cells.get([name, epsilon, run], partial(release, epsilon, run)) for run in range(1, RELEASES + 1)]
            )
            errors = every.std(axis=0, ddof=1) / np.sqrt(RELEASES)
            means, covered = every.mean(axis=0), len(QUERIES)
            shown = [f"{mean:.2f} ± {error:.2f}" for mean, error in zip(means[:covered], errors[:covered], strict=True)]
            rows.append([name, str(epsilon), *shown, *(f"{width:.3f}" for width in means[covered:])])
    note = f"Mean share of intervals at level {LEVEL} that contain the true answer, over {RELEASES} releases, and its "
    note += f"standard error. Funnels: the last step of {FUNNELS} random funnels of {STEPS} symbols that start in real "
    note += (
        f"sequences. Transitions: those of symbols in at least {COMMON:.0%} of the sequences. Paths: the {PATHS} most "
    )
    note += "frequent runs of 3 symbols. Widths: means over intervals and releases. "
    note += f"The rule of the intervals was chosen on the same collections, except {' and '.join(WITHHELD)}."
    BENCHMARK.table("Coverage of the intervals of sequences", rows, "sequences_intervals", note)


def forms() -> tuple[LocalCorpus, tuple[str, ...]]:
    """Return visits of a form with directories as pages. Some users go back, and some stop at any page."""
    rng, pages = np.random.default_rng(6), ["/name", "/address", "/address/abroad", "/income", "/income/rent"]
    visits = []
    for _ in range(FORMS_FILLED):
        abroad, rent, careful = rng.random(3) < [0.2, 0.3, 0.4]
        skipped = {page for page, needed in (("/address/abroad", abroad), ("/income/rent", rent)) if not needed}
        visit = ["/", *(page for page in pages if page not in skipped)]
        for _ in range(rng.geometric(0.5) if careful else 0):
            visit += [str(rng.choice(pages)), "/review"]
        visit += ["/upload"] * (1 + int(rng.random() < 0.3) * int(rng.geometric(0.5)))
        visits.append([*visit, "/review", "/send"][: rng.geometric(0.06)])
    rows = pl.DataFrame({"user": range(FORMS_FILLED), "sequence": visits})
    return read_engine(rows, user="user", sequence="sequence"), tuple(sorted(set(rows["sequence"].explode())))


def _coverage(
    corpus: LocalCorpus, alphabet: tuple[str, ...], truth: SequenceData, epsilon: float, run: int
) -> list[float]:
    """Return the share of correct intervals of one release by query, and the mean widths of intervals."""
    model = vp.Sequences(alphabet=alphabet).release(corpus, vp.Budget(epsilon), seed=run)
    size, real = len(alphabet), cut(truth, model.max_length)
    firsts = np.bincount(real.symbols[real.starts[:-1]], minlength=size) / real.size
    sizes = np.bincount(real.sizes, minlength=model.max_length + 1)[1:] / real.size
    sampler = model._sampler
    after = followers(sampler, real, number=np.arange(size + 1), rows=size)
    common = np.repeat(containing(real, [(symbol,) for symbol in range(size)], size) >= COMMON, size + 1)
    transitions = model.transitions(LEVEL).filter(common)
    runs = commonest_runs(real, 3, PATHS, size)
    paths = model._queries.answer(lambda _, sessions: containing(sessions, runs, size), LEVEL)
    funnels, reached = _funnels(model, real)
    return [
        float(right(_by_number(model.starting(LEVEL), alphabet), firsts).mean()),
        float(right(_by_number(model.ending(LEVEL), alphabet), last_symbols(sampler, real)).mean()),
        float(right(transitions, after[common]).mean()),
        float(right(model.lengths(LEVEL), sizes).mean()),
        float(right(funnels, reached).mean()),
        float(right(paths, containing(real, runs, size)).mean()),
        *(float((each["high"] - each["low"]).to_numpy().mean()) for each in (transitions, funnels, paths)),
    ]


def _by_number(answers: pl.DataFrame, alphabet: tuple[str, ...]) -> pl.DataFrame:
    """Return the answers in the order of the alphabet."""
    return answers.sort(pl.col("symbol").replace_strict(alphabet, range(len(alphabet)), return_dtype=pl.Int64))


def _funnels(model: vp.SequenceModel, real: Sessions) -> tuple[pl.DataFrame, Floats]:
    """Return the last step of funnels along real sequences, as released, and the true shares."""
    rng, found, exact = np.random.default_rng(1), [], []
    long = np.flatnonzero(real.sizes >= STEPS)
    for which in rng.choice(long, FUNNELS):
        places = np.sort(rng.choice(int(real.sizes[which]), STEPS, replace=False))
        steps = real.symbols[real.starts[which] + places]
        exact.append(reaching(model._sampler, real, steps=steps, within=model.max_length)[-1])
        found.append(model.funnel([model.alphabet[step] for step in steps.tolist()], level=LEVEL)[-1:])
    return pl.concat(found), np.array(exact)


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
