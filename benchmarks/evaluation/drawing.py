"""Synthetic sequences of any model, for comparison."""

from typing import Any

import numpy as np

from benchmarks.evaluation.sequences import SequenceData, as_sequences
from voxpop.mechanisms.sequences.queries import ContextSampler
from voxpop.privacy.secret import Secret


def estimated_sequences(model: Any) -> float:
    """Return the number of sequences that a model estimates.

    The model is a `ContextSampler`, or an object with `sequences`.
    """
    return float(model.fit.sequences if isinstance(model, ContextSampler) else model.sequences)


def draw_from(model: Any, alphabet: int, seed: int) -> SequenceData:
    """Draw as many sequences as a model estimates.

    Args:
        model: The model (see `estimated_sequences`). Its `draw` returns `Sessions`, or symbols and sizes.
        alphabet: The number of symbols.
        seed: The seed. The same seed draws the same sequences again.
    """
    names = np.arange(round(estimated_sequences(model)), dtype=np.uint64)
    drawn = model.draw(Secret.from_seed(seed).draws("synthetic", names, 0)[:, 0])
    symbols, sizes = drawn if isinstance(drawn, tuple) else (drawn.symbols, drawn.sizes)
    return as_sequences(symbols, sizes, alphabet)
