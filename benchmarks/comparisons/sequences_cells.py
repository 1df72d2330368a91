"""Count queries, frequent patterns and lengths of sequences, for seven collections and epsilon from 0.1 to 1.5.

    python -m benchmarks.comparisons.sequences_cells

Runs that the same code has measured are cached in `out/cells`. The benchmark reads exact private numbers, which is
permitted only for research on public data. Seeds make it repeatable.
"""

from collections import defaultdict
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import polars as pl

import voxpop as vp
from benchmarks.baselines.chains import MOST_BINS, release_chain
from benchmarks.baselines.gram_draws import Sampler
from benchmarks.baselines.prefix_trees import release_prefix_tree
from benchmarks.baselines.priv_tree import release_priv_tree
from benchmarks.evaluation import (
    SequenceData,
    as_sequences,
    private_counts,
    private_length_distance,
    private_queries,
    private_sequences,
    private_top_patterns,
    private_true_positives,
)
from benchmarks.evaluation.drawing import estimated_sequences
from benchmarks.evaluation.sequences import SANITY
from benchmarks.support.benchmark import SEQUENCES, Benchmark
from benchmarks.support.common import DATA
from benchmarks.support.engines import read_engine
from voxpop.engine.local.corpus import LocalCorpus, one_sequence_each
from voxpop.privacy.secret import Secret

BENCHMARK = Benchmark(
    __file__,
    ("sequences_cells_msnbc", "sequences_cells_lost", "sequences_cells_best_length"),
    SEQUENCES,
    minutes=40,
    seeds="1, 2, ... by run",
)

EPSILONS = (0.1, 0.25, 0.5, 1.0, 1.5)
CELLS = [(kind, most) for kind in ("held", "uniform") for most in (2, 4, 6, 8)]
KS = (20, 40, 60, 80, 100)
QUERIES, MAX_LENGTH, MAX_GRAM, PREFIXES = 10_000, 20, 5, 10
MOST_DRAWN = defaultdict(lambda: 200_000, msnbc=2_000_000)
"""The maximum number of drawn sequences. It is twice the true number of MSNBC, twelve times the true number of the
chat, and a larger multiple for the small samples. If a model estimates more, each drawn sequence represents several."""
COLUMNS = [*(f"{kind} to {most}" for kind, most in CELLS), *(f"top {k}" for k in KS), "length distance", "sequences"]
RIVALS = ("unigrams", "fixed 2-grams", "fixed 3-grams", "fixed 4-grams", "prefix tree", "published")
MODELS = ("default", *RIVALS, "PrivTree")
LENGTHS, PROCESS = (4, 6, 8, 10, 13, 20), "incidents"
"""On short sequences, every rival also gets the best of these lengths, which the true data selects for each cell."""
ONCE = {("irc", "fixed 3-grams"), ("irc", "prefix tree")}
"""Models that are measured once at each epsilon. With 201 words, their noise adds many times the 16,100 true sequences,
and their errors are hundreds of times the errors of the other models."""
TOO_LARGE = {("irc", "prefix tree"): 0.5}
"""Above this epsilon, too many of the 201 children of each prefix exceed their thresholds, and the tree exceeds 7
GiB."""
MOST_BEHIND = 0.02
PLACES = (*[3] * len(CELLS), *[1] * len(KS), 3, 0)
"""The number of decimal places of each column."""
WORDS = 15
FEW = {"msnbc, 7,000": (7_000, 2), "msnbc, 2,000": (2_000, 4), "irc, 7,000": (7_000, 5), "irc, 2,000": (2_000, 20)}
RUNS = {"msnbc": 5, "irc": 5, **dict.fromkeys(("incidents", *FEW), 8)}
"""The number of runs of each model and epsilon."""
Kept = dict[tuple[str, float, str], list[list[float]]]
"""The figures of runs by collection, epsilon and model."""


def collection(name: str) -> tuple[LocalCorpus, tuple[str, ...]]:
    """Return a corpus and its alphabet. The messages of each user of a chat form one sequence."""
    if name in FEW:
        rows = _few(name)
        return read_engine(rows, user="user", sequence="sequence"), tuple(sorted(set(rows["sequence"].explode())))
    if name == "incidents":
        rows = pl.read_parquet(DATA / "incidents.parquet")
        return read_engine(rows, user="user", sequence="sequence"), tuple(sorted(set(rows["sequence"].explode())))
    if name == "msnbc":
        corpus = read_engine(DATA / "msnbc.parquet", user="user", sequence="sequence")
        return corpus, tuple(sorted(str(page) for page in range(1, 18)))
    rows = pl.read_parquet(DATA / "ubuntu_irc.parquet").with_columns(pl.col("text").fill_null(""))
    words = vp.Items(max_items_per_user=10).release(
        read_engine(rows, user="user", text="text"), vp.Budget(0.2, 1e-7), seed=1
    )
    joined = rows.group_by("user", maintain_order=True).agg(pl.col("text").str.join("\n"))
    return read_engine(joined, user="user", text="text"), tuple(sorted(words))


def _few(name: str) -> pl.DataFrame:
    """Return few users with long sequences, which are joined rows of msnbc, or the common words of a few messages."""
    users, each = FEW[name]
    if name.startswith("msnbc"):
        rows = pl.read_parquet(DATA / "msnbc.parquet").sample(users * each, seed=1, shuffle=True)
        rows = rows.select(pl.int_range(pl.len()) // each, pl.col("sequence").cast(pl.List(pl.String)))
    else:
        words = pl.col("text").fill_null("").str.to_lowercase().str.extract_all("[a-z]+")
        rows = pl.read_parquet(DATA / "ubuntu_irc.parquet").select("user", words.alias("sequence"))
        common = rows["sequence"].explode().drop_nulls().value_counts(sort=True)[:WORDS, 0]
        rows = rows.filter(pl.int_range(pl.len()).over("user") < each).explode("sequence")
        rows = (
            rows.filter(pl.col("sequence").is_in(common.implode()))
            .group_by("user", maintain_order=True)
            .agg("sequence")
        )
        rows = rows.sample(users, seed=1)
    rows.columns = ["user", "sequence"]
    return rows.explode("sequence").group_by("user", maintain_order=True).agg("sequence")


class Measure:
    """One collection, its queries and their true answers."""

    def __init__(self, name: str) -> None:
        """Read the collection."""
        self.name = name
        self.corpus, self.alphabet = collection(name)
        self.cut = self.cut_at(MAX_LENGTH)
        self.whole = name.startswith(("msnbc", "incidents"))
        self.truth = private_sequences(self.corpus, self.alphabet) if self.whole else self.first_symbols()
        sets = [private_queries(self.truth, most, QUERIES, most, kind) for kind, most in CELLS]
        self.queries = [query for each in sets for query in each]
        self.counts = private_counts(self.truth, self.queries)
        self.top = private_top_patterns(self.truth, max(KS))

    def cut_at(self, length: int) -> np.ndarray:
        """Return the sequences that models with this length get."""
        return one_sequence_each(self.corpus, self.alphabet, length, Secret.from_seed(0))

    def first_symbols(self) -> SequenceData:
        """Return the truncated sequences that every model gets.

        Most words of users with thousands of words are cut off.
        """
        ends = np.flatnonzero(self.cut == len(self.alphabet))
        sizes = np.diff(ends, prepend=-1) - 1
        return as_sequences(self.cut[self.cut < len(self.alphabet)], sizes, len(self.alphabet))

    def of(self, model: str, epsilon: float, run: int, length: int = MAX_LENGTH) -> list[float]:
        """Return the figures of one release of one model of at most this number of symbols."""
        released = self.released(model, epsilon, run, length)
        number = max(estimated_sequences(released), 1.0)
        many = min(round(number), MOST_DRAWN[self.name])
        seeds = Secret.from_seed(1000 + run).draws("synthetic", np.arange(many, dtype=np.uint64), 0)[:, 0]
        drawn = released.draw(seeds)
        drawn = drawn if isinstance(drawn, tuple) else (drawn.symbols, drawn.sizes)
        data = as_sequences(*drawn, len(self.alphabet))
        return [*self.errors(data, number / many), *self.others(data), number]

    def released(self, model: str, epsilon: float, run: int, length: int = MAX_LENGTH):
        """Return a release from which sequences can be drawn."""
        if model == "default":
            # The truth of the chat consists of the first words, so that it has no longer sequences.
            mechanism = vp.Sequences(None if self.whole else length, MAX_GRAM, self.alphabet)
            return mechanism.release(self.corpus, vp.Budget(epsilon), seed=run)._sampler
        if model == "published":
            paper = vp.papers.VariableLengthNGrams(length, MAX_GRAM, self.alphabet)
            return Sampler.of(paper.release(self.corpus, vp.Budget(epsilon), seed=run).tree, length)
        size, exact, secret = len(self.alphabet), Fraction(epsilon), Secret.from_seed(run)
        cut = self.cut if length == MAX_LENGTH else self.cut_at(length)
        if model == "prefix tree":
            return release_prefix_tree(cut, size, min(PREFIXES, length), exact, secret)
        if model == "PrivTree":
            return release_priv_tree(cut, size, length, exact, run)
        gram = 1 if model == "unigrams" else int(model.split()[1][0])
        return release_chain(cut, size, length, gram, exact, secret)

    def errors(self, data: SequenceData, weight: float) -> list[float]:
        """Return the mean relative error of each set of queries."""
        found = private_counts(data, self.queries) * weight
        errors = np.abs(found - self.counts) / np.maximum(self.counts, SANITY * self.truth.size)
        return errors.reshape(len(CELLS), QUERIES).mean(axis=1).tolist()

    def others(self, data: SequenceData) -> list[float]:
        """Return the true positives and the distance of lengths."""
        hits = private_true_positives(self.top, private_top_patterns(data, max(KS)), KS)["true_positives"].to_list()
        return [*hits, private_length_distance(self.truth, data, MAX_LENGTH)]


def main() -> None:
    """Measure the runs that are not cached, print and write the results."""
    kept: Kept = {}
    for name, runs in RUNS.items():
        kept |= measured(name, runs)
    write(kept)
    write_best_length(with_best_length(kept))


def with_best_length(kept: Kept) -> Kept:
    """Return the figures of the process, of every rival at its best length by cell, by the means over runs."""
    cells, whole = BENCHMARK.cells(), Measure(PROCESS)
    found: Kept = {each: runs for each, runs in kept.items() if each[0] == PROCESS}
    for epsilon, model in product(EPSILONS, RIVALS):
        every = []
        for length in LENGTHS:
            measure = partial(whole.of, model, epsilon, length=length)
            runs = range(1, RUNS[PROCESS] + 1)
            key = [PROCESS, epsilon, model] if length == MAX_LENGTH else [PROCESS, epsilon, f"{model}, {length}"]
            every.append([cells.get([*key, run], partial(measure, run)) for run in runs])
        by_length = np.array(every)
        sign = np.array([-1 if column.startswith("top") else 1 for column in COLUMNS])
        best = (sign * by_length.mean(axis=1)).argmin(axis=0)
        found[PROCESS, epsilon, model] = by_length[best, :, np.arange(best.size)].T.tolist()
    return found


def write_best_length(found: Kept) -> None:
    """Write the cells of the process that are lost to rivals at their best lengths."""
    lost: list[list[object]] = []
    for epsilon in EPSILONS:
        every = {model: np.array(found[PROCESS, epsilon, model]) for model in ("default", *RIVALS)}
        lost += [[PROCESS, epsilon, *each] for each in _lost(every)]
    note = f"As sequences_cells_lost, but every rival has the best of the lengths {', '.join(map(str, LENGTHS))}, "
    note += "chosen by the truth for each cell; the lengths of the default follow from released numbers."
    BENCHMARK.table(
        "Cells that are lost to rivals of the best length", _table(lost), "sequences_cells_best_length", note
    )


def measured(name: str, runs: int) -> Kept:
    """Return the figures of every run of one collection."""
    cells, whole = BENCHMARK.cells(), Measure(name)
    models = [each for each in MODELS if each != "fixed 4-grams" or (len(whole.alphabet) + 1) ** 4 <= MOST_BINS]
    found: Kept = {}
    for epsilon, model in product(EPSILONS, models):
        if epsilon <= TOO_LARGE.get((name, model), 9):
            for run in range(1, 2 if (name, model) in ONCE else runs + 1):
                figures = cells.get([name, epsilon, model, run], partial(whole.of, model, epsilon, run))
                found.setdefault((name, epsilon, model), []).append(figures)
    return found


def write(kept: Kept) -> None:
    """Write the table of means of MSNBC, and the cells of all collections in which a rival is better."""
    rows: list[list[object]] = [["epsilon", "model", "runs", *COLUMNS]]
    lost: list[list[object]] = []
    for name, epsilon in product(RUNS, EPSILONS):
        every = {model: np.array(kept[name, epsilon, model]) for model in MODELS if (name, epsilon, model) in kept}
        lost += [[name, epsilon, *each] for each in _lost(every)]
        if name == "msnbc":
            rows += [[epsilon, model, len(runs), *map(_shown, PLACES, runs.T)] for model, runs in every.items()]
    note = f"Means over runs, with their standard errors; rivals with max_length {MAX_LENGTH}, the default with "
    note += f"released lengths; max_gram {MAX_GRAM}. Of count "
    note += f"queries, |Q - Q'| / max(Q, 0.1 %), {QUERIES:,} of lengths uniform from 1; held: at random places "
    note += "of the data, uniform: random symbols. Top k: of the k most frequent patterns (gaps allowed), how many "
    note += "are among the synthetic k."
    BENCHMARK.table("Sequences: every cell of msnbc", rows, "sequences_cells_msnbc", note)
    cells = len(COLUMNS[:-1]) * sum(model == "default" for _, _, model in kept)
    note = f"Of {cells} cells, those where the mean of the default is more than 2 % worse than that of the best of "
    note += f"{', '.join(RIVALS)}. The best of several means is slightly too good. Runs: "
    note += f"{', '.join(f'{name} {runs}' for name, runs in RUNS.items())}; fixed 3-grams and prefix trees on irc, "
    note += f"whose noise outnumbers the data, 1, of which {MOST_DRAWN['irc']:,} are drawn. On irc, truth is the first "
    note += "words of each person that models are given; above epsilon 0.5 prefix trees do not fit into 7 GiB, and "
    note += f"fixed 4-grams have too many bins. Symbols of the small ones of irc are its {WORDS} most frequent words."
    BENCHMARK.table("Cells that are lost", _table(lost), "sequences_cells_lost", note)


def _table(lost: list[list[object]]) -> list[list[object]]:
    head = ["collection", "epsilon", "cell", "default", "best rival", "which", "worse by", "standard error of that"]
    return [head, *(lost or [["none", *[""] * 7]])]


def _lost(found: dict[str, np.ndarray]) -> list[list[object]]:
    """Return the cells of an epsilon in which the default is worse than the best rival, with standard errors."""
    lost: list[list[object]] = []
    for place, column in enumerate(COLUMNS[:-1]):
        sign = -1 if column.startswith("top") else 1
        best = min(
            (model for model in RIVALS if model in found), key=lambda model: sign * found[model][:, place].mean()
        )
        ours, theirs = found["default"][:, place], found[best][:, place]
        behind = sign * (ours.mean() / theirs.mean() - 1)
        if behind > MOST_BEHIND:
            error = float(np.hypot(_error(ours), _error(theirs)) / theirs.mean())
            digits = PLACES[place]
            shown = [f"{each.mean():.{digits}f}" for each in (ours, theirs)]
            lost.append([column, *shown, best, f"{100 * behind:.1f} %", f"{100 * error:.1f} %"])
    return lost


def _error(runs: np.ndarray) -> float:
    """Return the standard error of a mean, or NaN for one run."""
    return float(runs.std(ddof=1) / np.sqrt(runs.size)) if runs.size > 1 else float("nan")


def _shown(digits: int, runs: np.ndarray) -> str:
    """Return a mean, with its standard error if there are several runs."""
    mean = f"{runs.mean():,.{digits}f}"
    return mean if runs.size < 2 else f"{mean} ± {_error(runs):,.{digits}f}"


if __name__ == "__main__":
    main()
