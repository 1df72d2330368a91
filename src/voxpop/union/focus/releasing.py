"""The double line of a focused set union: rounds of noisy weights, and what follows from them.

Everything after `noisy_cells` is a function of noisy weights: of a Gaussian mechanism on the items that other users
hold, and of noise and a user's own weights on those that nobody else holds.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxpop.arrow import int64_array
from voxpop.errors import InputError
from voxpop.privacy.measured import noisy_cells
from voxpop.privacy.secret import Secret
from voxpop.release import Release
from voxpop.union.releasing import run_round

if TYPE_CHECKING:
    from voxpop.corpus import Corpus, Histogram
    from voxpop.union.focus.plan import FocusPlan, FocusRound

Floats = NDArray[np.float64]
HELD = 1
"""Still undecided; 0 is for items that were released or dropped."""


def release_focused(plan: "FocusPlan", corpus: "Corpus", seed: int | None) -> Release:
    """Release what the rounds are sure of, one after the other; see `SetUnion.release`."""
    secret = Secret.fresh() if seed is None else Secret.from_seed(seed)
    if not hasattr(corpus, "bounded"):
        raise InputError("focused rounds run on one machine only; leave out `focus` on Spark.")
    found = np.zeros(len(corpus.vocabulary), np.bool_)
    undecided = np.full(found.size, HELD, np.uint8)
    first = run_round(plan.opening, plan.budget, corpus.remaining(), secret, "round 0/length 1")
    found[first], undecided[first] = True, 0
    bounded = corpus.bounded(plan.mechanism.limit, undecided, secret, "focus/length 1")
    evidence = np.zeros(found.size)
    for number in range(len(plan.rounds)):
        _add_round(plan, number, bounded, secret, undecided, evidence, found)
    items = corpus.vocabulary.take(int64_array(np.flatnonzero(found)))
    guarantee = replace(plan.guarantee, private=secret.private)
    return Release.from_items(items, plan, guarantee, corpus.reading, corpus.keys)


def _add_round(
    plan: "FocusPlan",
    number: int,
    bounded: "Corpus",
    secret: Secret,
    undecided: NDArray[np.uint8],
    evidence: Floats,
    found: NDArray[np.bool_],
) -> None:
    """Weigh the undecided items, add what the noisy weights say, release and drop."""
    each, rules, occasion = plan.rounds[number], plan.evidence, f"round {number + 1}/length 1"
    histogram = bounded.weigh(each.shares, plan.mechanism.limit, undecided, secret, occasion)
    ids = histogram.ids
    evidence[ids] += rules.parts[number] * _shown(each, histogram, secret, occasion)
    spread = float(rules.spreads[number])
    reached = ids[evidence[ids] >= rules.thresholds[number] * spread]
    found[reached], undecided[reached] = True, 0
    if number < len(rules.floors):
        undecided[ids[evidence[ids] < rules.floors[number] * spread]] = 0


def _shown(each: "FocusRound", histogram: "Histogram", secret: Secret, occasion: str) -> Floats:
    """Return noisy weights in standard deviations of their noise."""
    unit = each.shares.setting.unit
    draws = secret.draws(f"noise/{occasion}", histogram.ids.astype(np.uint64), 0)
    cells = noisy_cells(histogram.weights, each.sigma, unit, round(each.cell * unit), draws)
    return np.asarray(cells * (each.cell / each.sigma), np.float64)
