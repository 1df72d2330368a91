"""The exact worst case over all sequences of Gaussian and pure releases that a rule admits."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

NODES = 3001
WIDTH = 10.0


def worst_case(epsilon: float, corners: Sequence[tuple[float, float]]) -> float:
    """Return the largest delta of strategies that remain within one of several corners, by optimal stopping.

    A strategy spends mu^2 in small steps and observes the loss after each step. At any time, it may spend the epsilon
    of a corner if the mu^2 so far is within the cap of this corner. The whole epsilon is then added to the loss. The
    value is a convex function of the loss, so linear interpolation between the nodes bounds it from above.

    Args:
        epsilon: The epsilon at which delta is computed.
        corners: The caps on epsilon, in decreasing order, and on mu^2, in increasing order.
    """
    last = math.sqrt(corners[-1][1])
    top = epsilon + max(2.0, 6 * last)
    step = (WIDTH * last + top) / NODES
    losses = step * np.arange(-int(WIDTH * last / step), int(top / step) + 1)
    paid = [np.maximum(0, -np.expm1(np.minimum(0, epsilon - most - losses))) for most, _ in corners]
    value = paid[-1]
    for number in range(len(corners) - 2, -1, -1):
        value = np.maximum(paid[number], _after(value, step, corners[number + 1][1] - corners[number][1]))
    return float(_after(value, step, corners[0][1])[int(np.searchsorted(losses, -step / 2))])


def _after(value: np.ndarray, step: float, square: float) -> np.ndarray:
    """Return the expected value after Gaussian noise with this mu^2.

    The privacy loss of the noise has mean mu^2 / 2 and variance mu^2.
    """
    if square < 1e-14:
        return value
    spread = math.sqrt(square)
    reach = int((10 * spread + square) / step) + 2
    knots = (square / 2 - step * np.arange(-reach - 1, reach + 2)) / spread
    hinge = (knots * ndtr(knots) + np.exp(-knots * knots / 2) / math.sqrt(2 * math.pi)) * spread / step
    weights = np.maximum(hinge[:-2] - 2 * hinge[1:-1] + hinge[2:], 0)
    padded = np.concatenate([np.full(reach, value[0]), value, np.full(reach, 1.0)])
    return np.convolve(padded, weights[::-1] / weights.sum(), mode="valid")
