"""CAC12 on MSNBC, with queries, patterns and lengths of synthetic sequences, for epsilon from 0.1 to 1.5.

    python -m benchmarks.papers.sequences_msnbc
The queries are count queries, and the patterns are the frequent ones. "variable" is
`voxpop.papers.VariableLengthNGrams`, "paper's data" is the synthesis of 4.3.5, and "published" draws from the same
tree. The benchmark reads exact private numbers, which is permitted only for research on public data. Seeds make it
repeatable.
"""

from fractions import Fraction

import numpy as np

import voxpop as vp
from benchmarks.baselines.chains import release_chain
from benchmarks.baselines.gram_draws import Sampler
from benchmarks.baselines.prefix_trees import release_prefix_tree
from benchmarks.evaluation import (
    SequenceData,
    as_sequences,
    private_length_distance,
    private_queries,
    private_relative_error,
    private_sequences,
    private_top_patterns,
    private_true_positives,
)
from benchmarks.evaluation.drawing import draw_from
from benchmarks.support.benchmark import SEQUENCES, Benchmark
from benchmarks.support.common import DATA
from benchmarks.support.engines import read_engine
from voxpop.engine.local.corpus import LocalCorpus, one_sequence_each
from voxpop.privacy.secret import Secret

BENCHMARK = Benchmark(
    __file__,
    ("sequences_msnbc_queries", "sequences_msnbc_patterns"),
    SEQUENCES,
    minutes=8,
    seeds="releases 1, synthetic sequences 2",
)

EPSILONS = (0.1, 0.25, 0.5, 1.0, 1.5)
LENGTHS = (2, 4, 6, 8)
KS = (20, 40, 60, 80, 100)
QUERIES = 10_000
MAX_LENGTH, MAX_GRAM, PREFIXES = 20, 5, 10
ALPHABET = tuple(sorted(str(page) for page in range(1, 18)))


def released(corpus: LocalCorpus, epsilon: float) -> dict[str, SequenceData]:
    """Draw synthetic sequences from every model. Each model estimates the number of its sequences."""
    found = {}
    ours = vp.Sequences(MAX_LENGTH, MAX_GRAM, ALPHABET).release(corpus, vp.Budget(epsilon), seed=1)
    found["default"] = draw_from(ours._sampler, len(ALPHABET), 2)
    mechanism = vp.papers.VariableLengthNGrams(MAX_LENGTH, MAX_GRAM, ALPHABET)
    model = mechanism.release(corpus, vp.Budget(epsilon), seed=1)
    sampler = Sampler.of(model.tree, MAX_LENGTH)
    found["variable, published"] = draw_from(sampler, len(ALPHABET), 2)
    paper = model.synthesize()
    lists = paper["sequence"].to_list()
    flat = np.array(
        [ALPHABET.index(x) for each, n in zip(lists, paper["count"], strict=True) for x in each * n], np.int32
    )
    sizes = np.repeat([len(each) for each in lists], paper["count"].to_numpy())
    found["variable, paper's data"] = as_sequences(flat, sizes, len(ALPHABET))
    secret, exact = Secret.from_seed(1), Fraction(epsilon)
    cut = one_sequence_each(corpus, ALPHABET, MAX_LENGTH, secret)
    for gram in (1, 2, 3, 4):
        name = "unigrams" if gram == 1 else f"fixed {gram}-grams"
        chain = release_chain(cut, len(ALPHABET), MAX_LENGTH, gram, exact, secret)
        found[name] = draw_from(chain, len(ALPHABET), 2)
    tree = release_prefix_tree(cut, len(ALPHABET), PREFIXES, exact, secret)
    found["prefix tree"] = draw_from(tree, len(ALPHABET), 2)
    return found


def main() -> None:
    """Measure, print and write the results."""
    corpus = read_engine(DATA / "msnbc.parquet", user="user", sequence="sequence")
    truth = private_sequences(corpus, ALPHABET)
    top = private_top_patterns(truth, max(KS))
    queries = {
        (kind, most): private_queries(truth, most, QUERIES, most, kind)
        for kind in ("held", "uniform")
        for most in LENGTHS
    }
    error_rows = [["epsilon", "model", *(f"{kind} to {most}" for kind, most in queries)]]
    top_rows = [["epsilon", "model", *(f"top {k}" for k in KS), "length distance", "sequences"]]
    for epsilon in EPSILONS:
        for name, data in released(corpus, epsilon).items():
            errors = [float(private_relative_error(truth, data, each).mean()) for each in queries.values()]
            hits = private_true_positives(top, private_top_patterns(data, max(KS)), KS)["true_positives"].to_list()
            distance = private_length_distance(truth, data, MAX_LENGTH)
            error_rows.append([epsilon, name, *(f"{error:.3f}" for error in errors)])
            top_rows.append([epsilon, name, *hits, f"{distance:.3f}", f"{data.size:,}"])
    note = (
        f"MSNBC, max_length {MAX_LENGTH}, max_gram {MAX_GRAM}; one seeded run. Mean of |Q - Q'| / max(Q, 0.1 %) over "
    )
    note += f"{QUERIES:,} queries of lengths uniform from 1; held: runs at random places of the data, uniform: "
    note += "random pages."
    BENCHMARK.table("Relative error of count queries", error_rows, "sequences_msnbc_queries", note)
    note = (
        "Of the k sequential patterns (gaps allowed) that most sequences contain, how many are among the synthetic k; "
    )
    note += "distance of length distributions in total variation; 989,818 true sequences."
    BENCHMARK.table("Frequent patterns and lengths", top_rows, "sequences_msnbc_patterns", note)


if __name__ == "__main__":
    main()
