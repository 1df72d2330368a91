"""Independent computations of delta, by formulas to eighty digits, numerical integration, and dp-accounting."""

import math
from collections import Counter

import numpy as np
from dp_accounting.pld import pld_pmf, privacy_loss_distribution

from voxpop.privacy import precise


def gaussian_delta(epsilon, mu):
    """Return the delta of a Gaussian mechanism by the textbook formula, to eighty digits."""
    mp = precise.context
    e, m = mp.mpf(epsilon), mp.mpf(mu)
    if m == 0:
        return max(mp.mpf(0), 1 - mp.exp(e))
    return mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m)


def pair_delta(epsilon, sigma, threshold, novel_weights, shared_square, mu_rest=0.0):
    """Return the larger of the deltas in both directions for neighbours with noisy values, to eighty digits."""
    mp = precise.context
    none = mp.mpf(1)
    for weight, items in Counter(novel_weights).items():
        none *= mp.ncdf((mp.mpf(threshold) - mp.mpf(weight)) / mp.mpf(sigma)) ** items
    mu = mp.sqrt(mp.mpf(shared_square) / mp.mpf(sigma) ** 2 + mp.mpf(mu_rest) ** 2)
    forward = 1 - none + none * gaussian_delta(mp.mpf(epsilon) - mp.log(none), mu)
    return float(max(forward, gaussian_delta(mp.mpf(epsilon) + mp.log(none), mu)))


def integrated_delta(epsilon, hit, log_density, shift):
    """Return the hockey-stick divergences between "a hit or shifted noise" and "noise", as sums over a fine grid."""
    x = np.linspace(-40, 40, 400_001)
    step = x[1] - x[0]
    without, with_user = np.exp(log_density(x)), (1 - hit) * np.exp(log_density(x - shift))
    forward = hit + np.maximum(with_user - math.exp(epsilon) * without, 0).sum() * step
    reverse = np.maximum(without - math.exp(epsilon) * with_user, 0).sum() * step
    return forward, reverse


def hit_distribution(steps, interval):
    """Return the privacy loss distribution of a novel item with release probability 1 - e^(-steps * interval)."""
    hit = -math.expm1(-steps * interval)
    with_user = pld_pmf.create_pmf({-steps: 1 - hit}, interval, hit, True)
    without = pld_pmf.create_pmf({steps: 1.0}, interval, 0.0, True)
    return hit, privacy_loss_distribution.PrivacyLossDistribution(with_user, without)


def gaussian_distribution(mu, interval):
    """Return the privacy loss distribution of a Gaussian mechanism. It is exact at multiples of the interval."""
    return privacy_loss_distribution.from_gaussian_mechanism(1 / mu, value_discretization_interval=interval)
