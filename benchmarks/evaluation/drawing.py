"""Synthetic sequences of any model, for comparison."""

from typing import Any

import numpy as np

from benchmarks.evaluation.sequences import SequenceData, as_sequences
from voxpop.privacy.secret import Secret


def draw_from(model: Any, alphabet: int, seed: int) -> SequenceData:
    """Draw as many sequences as a model estimates.

    Args:
        model: an object with `sequences`, and with `draw`, which returns `Sessions`, or symbols and sizes.
        alphabet: number of symbols.
        seed: the same seed draws the same sequences again.
    """
    names = np.arange(round(model.sequences), dtype=np.uint64)
    drawn = model.draw(Secret.from_seed(seed).draws("synthetic", names, 0)[:, 0])
    symbols, sizes = drawn if isinstance(drawn, tuple) else (drawn.symbols, drawn.sizes)
    return as_sequences(symbols, sizes, alphabet)
