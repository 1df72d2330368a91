"""DPSU's Algorithm 8.

It is NOT PRIVATE as claimed, and only reproduces the paper's row (docs/privacy/algorithm-8.md).
"""

from dataclasses import replace

import numpy as np
from numba import njit

import voxpop as vp
from benchmarks.evaluation.weights import private_weights
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.privacy.decisions import ThresholdRule, decide
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting, WeightingRule


@njit(nogil=True)
def _descend(histogram, items, starts, cutoff):
    for j in range(starts.size - 1):
        mine = items[starts[j] : starts[j + 1]]
        gaps = cutoff - histogram[mine]
        ordered = np.sort(gaps)
        left, level = 1.0, 0.0
        for rank in range(ordered.size):
            level = np.sqrt(max(left, 0.0) / (ordered.size - rank))
            if ordered[rank] > level:
                break
            left -= ordered[rank] ** 2
            level = cutoff
        histogram[mine] += np.minimum(gaps, level)


class _Algorithm8(WeightingRule):
    """The weighting rule, computed in doubles from the integer histogram."""

    sequential = True
    name = "algorithm 8"

    noise, sound_norms = "gaussian", (2,)

    def novelty(self, setting):
        raise NotImplementedError("there is no guarantee to plan for")

    def share(self, held, setting):
        return held**-0.5

    def add(self, histogram, items, starts, setting):
        doubles = histogram / setting.unit
        _descend(doubles, items, starts, setting.cutoff / setting.unit)
        histogram[:] = (doubles * setting.unit).astype(np.int64)


def released_not_private(corpus: LocalCorpus, budget: vp.Budget, limit: int, alpha: float = 5.0) -> int:
    """Return the number of items that Algorithm 8 releases with the paper's noise and threshold."""
    plan = vp.papers.SetUnion(limit, "policy-gaussian", alpha).plan(budget)
    bits = 40
    cutoff = round((plan.threshold + alpha * plan.sigma) * 2**bits)
    shares = CalibratedRule(_Algorithm8(), replace(RuleSetting(limit, 2, bits), cutoff=cutoff))
    secret = Secret.fresh()
    ids, weights = private_weights(corpus.weigh(shares, limit, secret))
    rule = ThresholdRule("gaussian", plan.sigma, round(plan.threshold * 2**bits), 2.0**-bits)
    return int(decide(rule, weights, secret.draws("noise", ids.astype(np.uint64), 0)).sum())
