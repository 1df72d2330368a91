"""Comparison of synthetic visits with real visits by `private_resemblance` on MSNBC, and the numbers in the pictures.

    python -m benchmarks.comparisons.synthetic_sessions

The benchmark reads exact private numbers, which is permitted only for research on public data. Seeds make it
repeatable.
"""

from fractions import Fraction

import numpy as np

import voxpop as vp
from benchmarks.baselines.chains import release_chain
from benchmarks.baselines.gram_draws import Sampler
from benchmarks.evaluation import SequenceData, as_sequences, private_resemblance, private_sequences
from benchmarks.evaluation.drawing import draw_from
from benchmarks.support.benchmark import SEQUENCES, Benchmark
from benchmarks.support.common import DATA
from benchmarks.support.engines import read_engine
from voxpop.engine.local.corpus import LocalCorpus, one_sequence_each
from voxpop.mechanisms.sequences.drawing import Sessions
from voxpop.mechanisms.sequences.queries import commonest_runs, containing
from voxpop.privacy.secret import Secret

BENCHMARK = Benchmark(
    __file__,
    ("synthetic_sessions", "synthetic_sessions_shown"),
    SEQUENCES,
    minutes=8,
    seeds="by run; synthetic visits 1000 more",
)

EPSILONS = (0.1, 0.5, 1.5)
RUNS = 3
MAX_LENGTH, SHOWN_AT, PATHS = 20, 1.0, 12
ALPHABET = tuple(sorted(str(page) for page in range(1, 18)))


def cut(data: SequenceData) -> SequenceData:
    """Return the first `MAX_LENGTH` symbols of each sequence, the part that a model covers."""
    sizes = np.diff(data.starts)
    place = np.arange(data.symbols.size) - np.repeat(data.starts[:-1], sizes)
    return as_sequences(data.symbols[place < MAX_LENGTH], np.minimum(sizes, MAX_LENGTH), data.alphabet)


def half(data: SequenceData, which: int, run: int) -> SequenceData:
    """Return one of two random halves of the real sequences."""
    mine = np.random.default_rng(run).permutation(data.size) % 2 == which
    sizes = np.diff(data.starts)
    return as_sequences(data.symbols[np.repeat(mine, sizes)], sizes[mine], data.alphabet)


def drawn(corpus: LocalCorpus, model: str, epsilon: float, run: int) -> SequenceData:
    """Draw synthetic sequences from a model, which estimates their number."""
    if model == "default":
        mechanism = vp.Sequences(MAX_LENGTH, alphabet=ALPHABET)
        sampler = mechanism.release(corpus, vp.Budget(epsilon), seed=run)._sampler
    elif model == "published":
        paper = vp.papers.VariableLengthNGrams(MAX_LENGTH, alphabet=ALPHABET)
        sampler = Sampler.of(paper.release(corpus, vp.Budget(epsilon), seed=run).tree, MAX_LENGTH)
    else:
        secret = Secret.from_seed(run)
        sequences = one_sequence_each(corpus, ALPHABET, MAX_LENGTH, secret)
        sampler = release_chain(
            sequences, len(ALPHABET), MAX_LENGTH, int(model.split()[1][0]), Fraction(epsilon), secret
        )
    return draw_from(sampler, len(ALPHABET), 1000 + run)


def battery(corpus: LocalCorpus, truth: SequenceData) -> None:
    """Write the table of figures."""
    rows: list[list[object]] = []
    what: list[str] = []

    def add(epsilon: object, model: str, pairs: list[tuple[SequenceData, SequenceData]]) -> None:
        found = [private_resemblance(*pair) for pair in pairs]
        what[:] = found[0]["what"].to_list()
        values = np.array([each["value"].to_list() for each in found])
        spread = values.std(axis=0, ddof=1)
        shown = zip(values.mean(axis=0), spread, strict=True)
        rows.append([epsilon, model, *(f"{mean:.4f} ± {dev:.4f}" for mean, dev in shown)])

    runs = range(1, RUNS + 1)
    add("-", "two halves of the real ones", [(half(truth, 0, run), half(truth, 1, run)) for run in runs])
    for epsilon in EPSILONS:
        for model in ("default", "published", "fixed 2-grams", "fixed 3-grams"):
            add(epsilon, model, [(truth, drawn(corpus, model, epsilon, run)) for run in runs])
    note = f"MSNBC, visits cut after {MAX_LENGTH} pages; means and standard deviations of {RUNS} runs. "
    note += "Distances are in "
    note += "total variation. Classifier: the probability that naive Bayes over pages after the last two, "
    note += "beginnings and ends "
    note += "rates a real visit above a synthetic one; 0.5 means that it cannot distinguish them."
    BENCHMARK.table(
        "Synthetic visits beside real ones", [["epsilon", "model", *what], *rows], "synthetic_sessions", note
    )


def shares(data: SequenceData, paths: list[tuple[int, ...]]) -> dict[tuple[str, str], float]:
    """Return the numbers in the pictures of a collection."""
    found: dict[tuple[str, str], float] = {}
    symbols = np.bincount(data.symbols, minlength=len(ALPHABET)) / data.symbols.size
    found |= {("symbols", ALPHABET[place]): share for place, share in enumerate(symbols)}
    lengths = np.bincount(np.diff(data.starts), minlength=MAX_LENGTH + 1)[1:] / data.size
    found |= {("lengths", str(place + 1)): share for place, share in enumerate(lengths)}
    width = len(ALPHABET) + 1
    after = np.append(data.symbols[1:], width - 1)
    after[data.starts[1:] - 1] = width - 1
    pairs = np.bincount(data.symbols.astype(np.int64) * width + after, minlength=width * width) / data.symbols.size
    names = [*ALPHABET, "end"]
    for place in range(len(ALPHABET) * width):
        found["transitions", f"{names[place // width]} {names[place % width]}"] = pairs[place]
    held = containing(Sessions(data.symbols, data.starts), paths, len(ALPHABET))
    return found | {
        ("paths", " ".join(ALPHABET[symbol] for symbol in path)): share for path, share in zip(paths, held, strict=True)
    }


def pictured(corpus: LocalCorpus, truth: SequenceData) -> None:
    """Write the numbers in the pictures of one release."""
    paths = commonest_runs(Sessions(truth.symbols, truth.starts), 3, PATHS, len(ALPHABET))
    real, synthetic = shares(truth, paths), shares(drawn(corpus, "default", SHOWN_AT, 1), paths)
    rows = [[kind, name, f"{share:.6f}", f"{synthetic[kind, name]:.6f}"] for (kind, name), share in real.items()]
    note = f"MSNBC, visits cut after {MAX_LENGTH} pages, one release of the default at epsilon {SHOWN_AT:g}. "
    note += "Pages are numbered; "
    note += "transitions are shares of all steps, and paths are the share of visits that contain them."
    head = ["kind", "name", "real", "synthetic"]
    BENCHMARK.table("What the pictures of synthetic visits show", [head, *rows], "synthetic_sessions_shown", note)


def main() -> None:
    """Measure, print and write the results."""
    corpus = read_engine(DATA / "msnbc.parquet", user="user", sequence="sequence")
    truth = cut(private_sequences(corpus, ALPHABET))
    pictured(corpus, truth)
    battery(corpus, truth)


if __name__ == "__main__":
    main()
