"""Every cell of sequences: count queries, frequent patterns and lengths, two collections, epsilon from 0.1 to 1.5.

    python -m benchmarks.comparisons.sequences_cells msnbc 5        # the collection, and how many runs
    python -m benchmarks.comparisons.sequences_cells irc 5
    python -m benchmarks.comparisons.sequences_cells tables         # the tables, from the runs that were kept

Runs are kept, one line each, in `out/sequences_cells.csv`: an interrupted measurement goes on where it was. Reads
private truth; for research on public data. Seeds make it repeatable.
"""

import csv
import sys
from collections import defaultdict
from fractions import Fraction

import numpy as np

import voxpop as vp
from benchmarks.support.common import DATA, OUT, table
from voxpop.corpus.cutting import one_sequence_each
from voxpop.evaluate import (
    SequenceData,
    as_sequences,
    private_counts,
    private_length_distance,
    private_queries,
    private_sequences,
    private_top_patterns,
    private_true_positives,
)
from voxpop.evaluate.baselines.chains import MOST_BINS, release_chain
from voxpop.evaluate.baselines.prefix_trees import release_prefix_tree
from voxpop.evaluate.baselines.priv_tree import release_priv_tree
from voxpop.evaluate.sequences import SANITY
from voxpop.privacy.secret import Secret

EPSILONS = (0.1, 0.25, 0.5, 1.0, 1.5)
CELLS = [(kind, most) for kind in ("held", "uniform") for most in (2, 4, 6, 8)]
KS = (20, 40, 60, 80, 100)
QUERIES, MAX_LENGTH, MAX_GRAM, PREFIXES, MOST_DRAWN = 10_000, 20, 5, 10, 2_000_000
COLUMNS = [*(f"{kind} to {most}" for kind, most in CELLS), *(f"top {k}" for k in KS), "length distance", "sequences"]
RIVALS = ("unigrams", "fixed 2-grams", "fixed 3-grams", "fixed 4-grams", "prefix tree", "published")
MODELS = ("default", "grams, balanced", *RIVALS, "PrivTree")
KEPT = OUT / "sequences_cells.csv"


def collection(name: str) -> tuple[vp.Corpus, tuple[str, ...], str]:
    """Return a corpus, its alphabet and whose sequence is a user's own."""
    if name == "msnbc":
        corpus = vp.read(DATA / "msnbc.parquet", user="user", sequence="sequence")
        return corpus, tuple(sorted(str(page) for page in range(1, 18))), "sample"
    corpus = vp.read(DATA / "ubuntu_irc.parquet", user="user", text="text")
    words = vp.SetUnion(limit=10).release(corpus, vp.Budget(0.2, 1e-7), seed=1)
    return corpus, tuple(sorted(gram[0] for gram in words)), "concatenate"


class Measure:
    """One collection, its queries and their true answers."""

    def __init__(self, name: str) -> None:
        """Read it."""
        self.name = name
        self.corpus, self.alphabet, self.combine = collection(name)
        self.truth = private_sequences(self.corpus, self.alphabet)
        sets = [private_queries(self.truth, most, QUERIES, most, kind) for kind, most in CELLS]
        self.queries = [query for each in sets for query in each]
        self.counts = private_counts(self.truth, self.queries)
        self.top = private_top_patterns(self.truth, max(KS))
        self.cut = one_sequence_each(self.corpus, self.alphabet, MAX_LENGTH, self.combine, Secret.from_seed(0))

    def of(self, model: str, epsilon: float, run: int) -> list[float]:
        """Return the figures of one release of one model."""
        released = self.released(model, epsilon, run)
        number = max(released.sequences, 1.0)
        many = min(round(number), MOST_DRAWN)
        seeds = Secret.from_seed(1000 + run).draws("synthetic", np.arange(many, dtype=np.uint64), 0)[:, 0]
        data = as_sequences(*released.draw(seeds), len(self.alphabet))
        return [*self.errors(data, number / many), *self.others(data), number]

    def released(self, model: str, epsilon: float, run: int):
        """Return what can be drawn from."""
        if model in ("default", "grams, balanced", "published"):
            fields = {"default": {}, "published": {"consistency": "published"}}.get(model, {"tree": "grams"})
            mechanism = vp.Sequences(MAX_LENGTH, MAX_GRAM, self.combine, self.alphabet, **fields)
            return mechanism.release(self.corpus, vp.Budget(epsilon), seed=run)._sampler
        size, exact, secret = len(self.alphabet), Fraction(epsilon), Secret.from_seed(run)
        if model == "prefix tree":
            return release_prefix_tree(self.cut, size, PREFIXES, exact, secret)
        if model == "PrivTree":
            return release_priv_tree(self.cut, size, MAX_LENGTH, exact, run)
        gram = 1 if model == "unigrams" else int(model.split()[1][0])
        return release_chain(self.cut, size, MAX_LENGTH, gram, exact, secret)

    def errors(self, data: SequenceData, weight: float) -> list[float]:
        """Return the mean relative error of each set of queries."""
        found = private_counts(data, self.queries) * weight
        errors = np.abs(found - self.counts) / np.maximum(self.counts, SANITY * self.truth.size)
        return errors.reshape(len(CELLS), QUERIES).mean(axis=1).tolist()

    def others(self, data: SequenceData) -> list[float]:
        """Return true positives and the distance of lengths."""
        hits = private_true_positives(self.top, private_top_patterns(data, max(KS)), KS)["true_positives"].to_list()
        return [*hits, private_length_distance(self.truth, data, MAX_LENGTH)]


def measure(name: str, runs: int) -> None:
    """Measure what is not kept yet, run by run."""
    KEPT.parent.mkdir(exist_ok=True)
    done = {tuple(row[:4]) for row in _rows()}
    all_of_it = Measure(name)
    models = [each for each in MODELS if each != "fixed 4-grams" or (len(all_of_it.alphabet) + 1) ** 4 <= MOST_BINS]
    for run in range(1, runs + 1):
        for epsilon in EPSILONS:
            for model in models:
                if (name, str(epsilon), model, str(run)) in done:
                    continue
                figures = all_of_it.of(model, epsilon, run)
                with KEPT.open("a", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerow([name, epsilon, model, run, *(f"{figure:.6g}" for figure in figures)])


def tables() -> None:
    """Write the table of means, and the cells that are lost."""
    means = defaultdict(list)
    for row in _rows():
        means[row[0], float(row[1]), row[2]].append([float(each) for each in row[4:]])
    lost, cells = [], 0
    for name in ("msnbc", "irc"):
        rows = [["epsilon", "model", "runs", *COLUMNS]]
        for epsilon in EPSILONS:
            found = {
                model: np.mean(means[name, epsilon, model], axis=0)
                for model in MODELS
                if (name, epsilon, model) in means
            }
            for model, mean in found.items():
                shown = [f"{x:.3f}" for x in mean[:8]] + [f"{x:.1f}" for x in mean[8:13]]
                rows.append(
                    [epsilon, model, len(means[name, epsilon, model]), *shown, f"{mean[13]:.3f}", f"{mean[14]:,.0f}"]
                )
            for place, column in enumerate(COLUMNS[:13]):
                rivals = {model: found[model][place] for model in RIVALS if model in found}
                best = (min if place < 8 else max)(rivals, key=rivals.__getitem__)
                excess = (1 if place < 8 else -1) * (found["default"][place] / rivals[best] - 1)
                cells += 1
                if excess > 0.02:
                    lost.append([name, epsilon, column, f"{found['default'][place]:.3f}", f"{rivals[best]:.3f}", best])
        note = f"Means over runs; max_length {MAX_LENGTH}, max_gram {MAX_GRAM}. Of count queries, "
        note += f"|Q - Q'| / max(Q, 0.1 %), {QUERIES:,} of lengths uniform from 1; held: at random places of the data, "
        note += "uniform: random symbols. Top k: of the "
        note += "k most frequent patterns (gaps allowed), how many are among the synthetic k. "
        note += _runs_of({row: runs for row, runs in means.items() if row[0] == name})
        table(f"Sequences: every cell of {name}", rows, f"sequences_cells_{name}", note)
    head = ["collection", "epsilon", "cell", "default", "best rival", "which"]
    note = f"Of {cells} cells, those where the default is more than 2 % worse than the best of {', '.join(RIVALS)}. "
    note += _runs_of(means)
    table("Cells that are lost", [head, *(lost or [["none", "", "", "", "", ""]])], "sequences_cells_lost", note)


def _runs_of(means: dict[tuple[str, float, str], list[list[float]]]) -> str:
    """Say how many runs the means are of: rows of a measurement that was interrupted differ."""
    found = [len(runs) for runs in means.values()]
    most, least = max(found), min(found)
    return f"Each is the mean of {most} runs." if most == least else f"Means of {least} to {most} runs; see the rows."


def _rows() -> list[list[str]]:
    if not KEPT.exists():
        return []
    with KEPT.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


if __name__ == "__main__":
    if sys.argv[1] == "tables":
        tables()
    else:
        measure(sys.argv[1], int(sys.argv[2]))
