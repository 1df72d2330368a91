"""Tests on MSNBC of statements of CAC12 about the parameters l_max and n_max (Section 6) and false nodes (4.3.3).

    python -m benchmarks.papers.sequences_claims

The benchmark reads exact private numbers, which is permitted only for research on public data. Seeds make it
repeatable.
"""

import numpy as np

import voxpop as vp
from benchmarks.baselines.gram_draws import Sampler
from benchmarks.evaluation import (
    SequenceData,
    private_counts,
    private_queries,
    private_relative_error,
    private_sequences,
)
from benchmarks.evaluation.drawing import draw_from
from benchmarks.support.benchmark import SEQUENCES, Benchmark
from benchmarks.support.common import DATA
from benchmarks.support.engines import read_engine
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.papers.gram_tree import gram_symbols

BENCHMARK = Benchmark(
    __file__,
    ("sequences_parameters", "sequences_false_nodes"),
    SEQUENCES,
    minutes=3,
    seeds="releases 1, synthetic sequences 2",
)

EPSILON, RUNS, QUERIES, MOST = 1.0, 3, 2_000, 4
LENGTHS, GRAMS = (5, 10, 20, 40), (1, 2, 3, 4, 5, 6)
EPSILONS = (0.1, 1.0)
ALPHABET = tuple(sorted(str(page) for page in range(1, 18)))
MODELS = ("published", "default")


def drawn(corpus: LocalCorpus, model: str, length: int, gram: int, run: int) -> SequenceData:
    """Draw synthetic sequences from the model, which estimates their number."""
    if model == "default":
        sampler = vp.Sequences(length, gram, ALPHABET).release(corpus, vp.Budget(EPSILON), seed=run)._sampler
    else:
        paper = vp.papers.VariableLengthNGrams(length, gram, ALPHABET).release(corpus, vp.Budget(EPSILON), seed=run)
        sampler = Sampler.of(paper.tree, length)
    return draw_from(sampler, len(ALPHABET), 2)


def settings() -> list[tuple[str, int, int]]:
    """Return the varied parameter, `max_length` and `max_gram` of each setting."""
    return [("l_max", length, 5) for length in LENGTHS] + [("n_max", 20, gram) for gram in GRAMS]


def parameters(corpus: LocalCorpus, truth: SequenceData) -> None:
    """Write the error of queries for runs that occur, by l_max and n_max."""
    queries = private_queries(truth, MOST, QUERIES, MOST, "held")
    rows: list[list[object]] = [["varied", "l_max", "n_max", *MODELS]]
    for varied, length, gram in settings():
        errors = []
        for model in MODELS:
            data = [drawn(corpus, model, length, gram, run) for run in range(1, RUNS + 1)]
            found = [float(private_relative_error(truth, each, queries).mean()) for each in data]
            errors.append(f"{np.mean(found):.3f} ± {np.std(found, ddof=1):.3f}")
        rows.append([varied, length, gram, *errors])
    note = f"MSNBC, epsilon {EPSILON:g}; mean relative error of {QUERIES:,} held queries of up to {MOST} pages, "
    note += "with its standard "
    note += f"deviation over {RUNS} runs. The truth is that of whole visits, so pages after l_max count as error."
    BENCHMARK.table("CAC12: l_max and n_max", rows, "sequences_parameters", note)


def false_nodes(corpus: LocalCorpus, truth: SequenceData) -> None:
    """Write the number of continued grams that occur nowhere in the data."""
    rows: list[list[object]] = [
        ["epsilon", "run", "length", "continued", "of them nowhere in the data", "allowed by 4.3.3"]
    ]
    for epsilon in EPSILONS:
        for run in range(1, RUNS + 1):
            mechanism = vp.papers.VariableLengthNGrams(20, 5, ALPHABET)
            tree = mechanism.release(corpus, vp.Budget(epsilon), seed=run).tree
            symbols, sizes = gram_symbols(tree)
            grams = np.split(symbols, np.cumsum(sizes)[:-1])
            entries = np.searchsorted(tree.entries, tree.parents[1:])
            held = private_counts(truth, [tuple(grams[entry].tolist()) for entry in entries])
            lengths, false = sizes[entries], held == 0
            before = 0
            for length in range(1, int(lengths.max(initial=0)) + 1):
                mine = lengths == length
                # Each opened node, false or not, has at most one false child in expectation.
                opened = 1 if length == 1 else before
                rows.append([epsilon, run, length, int(mine.sum()), int(false[mine].sum()), opened])
                before = int(mine.sum())
    note = "MSNBC, published rule, l_max 20, n_max 5. Grams whose noisy count passed the threshold, so that "
    note += "the symbols after them were counted "
    note += "too. The paper sets the threshold so that each node has at most one false child on average; the "
    note += "last column is this maximum."
    BENCHMARK.table("CAC12: false nodes", rows, "sequences_false_nodes", note)


def main() -> None:
    """Measure, print and write the results."""
    corpus = read_engine(DATA / "msnbc.parquet", user="user", sequence="sequence")
    truth = private_sequences(corpus, ALPHABET)
    false_nodes(corpus, truth)
    parameters(corpus, truth)


if __name__ == "__main__":
    main()
