"""Differences between synthetic and private sequences, measured by distances and a classifier.

This module reads exact private numbers.
"""

import numpy as np
import polars as pl

from benchmarks.evaluation.sequences import SequenceData, private_length_distance
from voxpop.errors import InputError
from voxpop.kernels.arrays import Int64s

LONGEST = 50


def private_resemblance(truth: SequenceData, synthetic: SequenceData, memory: int = 2) -> pl.DataFrame:
    """Compare synthetic sequences with private ones.

    Distances are in total variation, which is 0 for equal distributions and 1 for disjoint ones. The classifier is
    naive Bayes over the symbols that follow contexts of up to `memory` symbols, beginnings and ends of sequences. It is
    trained on every other sequence of both kinds and tested on the rest. Its figure is the probability that it rates a
    real sequence above a synthetic one, which is 0.5 if it cannot distinguish them, and 1 if it always can.

    Args:
        truth: The private sequences.
        synthetic: The synthetic sequences.
        memory: The number of preceding symbols that the classifier uses.

    Returns:
        A table with the columns what and value. It is private and must not be published.

    Raises:
        InputError: If a side has fewer than two sequences, or the alphabets differ.
    """
    if truth.alphabet != synthetic.alphabet or min(truth.size, synthetic.size) < 2:
        raise InputError("two collections of two sequences at least over the same alphabet can be compared.")
    width = truth.alphabet + 1
    both = (truth, synthetic)
    symbols, follow = (
        [np.bincount(codes, minlength=width**size) for codes in each]
        for size, each in ((1, [data.symbols for data in both]), (2, [_steps(data, 1)[0] for data in both]))
    )
    rows = [
        ("symbols", _distance(symbols[0], symbols[1])),
        ("transitions", _distance(follow[0], follow[1])),
        ("beginnings", _distance(_ends(truth, first=True), _ends(synthetic, first=True))),
        ("ends", _distance(_ends(truth, first=False), _ends(synthetic, first=False))),
        ("lengths", private_length_distance(truth, synthetic, LONGEST)),
        ("classifier", _told_apart(truth, synthetic, memory)),
    ]
    return pl.DataFrame(rows, schema=["what", "value"], orient="row")


def _distance(one: Int64s, other: Int64s) -> float:
    """Return the distance of two histograms."""
    return float(np.abs(one / max(one.sum(), 1) - other / max(other.sum(), 1)).sum() / 2)


def _ends(data: SequenceData, *, first: bool) -> Int64s:
    held = np.diff(data.starts) > 0
    places = data.starts[:-1][held] if first else data.starts[1:][held] - 1
    return np.bincount(data.symbols[places], minlength=data.alphabet)


def _steps(data: SequenceData, memory: int) -> tuple[Int64s, Int64s]:
    """Return each step as one number (its context and the next symbol), and the number of its sequence."""
    width = data.alphabet + 1
    sizes = np.diff(data.starts)
    owner = np.repeat(np.arange(data.size), sizes + 1)
    symbols = np.full(owner.size, width - 1, np.int64)
    ends = np.cumsum(sizes + 1) - 1
    symbols[np.setdiff1d(np.arange(owner.size), ends, assume_unique=True)] = data.symbols
    codes = symbols.copy()
    for back in range(1, memory + 1):
        before = np.full(owner.size, width - 1, np.int64)
        same = owner[back:] == owner[:-back]
        before[back:][same] = symbols[:-back][same]
        codes += before * width**back
    return codes, owner


def _told_apart(truth: SequenceData, synthetic: SequenceData, memory: int) -> float:
    """Return the area under the curve of a classifier that is trained on one half and tested on the other."""
    kinds = (truth.alphabet + 1) ** (memory + 1)
    steps = [_steps(data, memory) for data in (truth, synthetic)]
    counts = [np.bincount(codes[owner % 2 == 0], minlength=kinds) + 1.0 for codes, owner in steps]
    weights = np.log(counts[0] / counts[0].sum()) - np.log(counts[1] / counts[1].sum())
    scores = [np.bincount(owner, weights=weights[codes]) for codes, owner in steps]
    real, drawn = scores[0][1::2], scores[1][1::2]
    both = np.concatenate([real, drawn])
    values, place = np.unique(both, return_inverse=True)
    numbers = np.bincount(place, minlength=values.size)
    ranks = (np.cumsum(numbers) - (numbers - 1) / 2)[place]  # ties share their mean rank
    return float((ranks[: real.size].sum() - real.size * (real.size + 1) / 2) / (real.size * drawn.size))
