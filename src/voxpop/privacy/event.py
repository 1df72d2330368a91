"""Guarantees as events of dp-accounting.

* A `Spend` is a Gaussian event and, beside it, one that with probability `novel` betrays the user: Laplace noise of
  scale 1/100 on a sample. For chances above 1e-20 and epsilons up to 20, all but 1e-4 of that probability counts as in
  full; so much is added.
* Randomised response is the worst release of some epsilon and no delta, but dp-accounting knows it for replaced users
  only. Laplace noise of scale 1/c is at least as bad: its delta(x) = 1 - e^((x - c) / 2) is above that of randomised
  response, (e^epsilon - e^x) / (1 + e^epsilon), at every x if c = 2 ln((1 + e^epsilon) / 2), with equality at x = 0.
"""

import math
from typing import TYPE_CHECKING, Any

from voxpop.errors import InputError

if TYPE_CHECKING:
    from voxpop.privacy.guarantee import Guarantee

BETRAYAL = 100.0
LEAK = 1 + 1e-4


def event_of(guarantee: "Guarantee") -> Any:
    """Return an event that dominates the release; see `Guarantee.to_dp_event`."""
    try:
        from dp_accounting import dp_event
    except ImportError:
        raise InputError("events need dp-accounting, which is not installed: pip install voxpop[accounting].") from None
    if guarantee.unproved or not guarantee.private:
        return dp_event.NonPrivateDpEvent()
    if guarantee.spend is not None and not guarantee.spend.apart:
        gaussian = dp_event.GaussianDpEvent(1 / guarantee.spend.mu)
        if guarantee.spend.novel <= 0:
            return gaussian
        hit = dp_event.PoissonSampledDpEvent(
            min(1.0, guarantee.spend.novel * LEAK), dp_event.LaplaceDpEvent(1 / BETRAYAL)
        )
        return dp_event.ComposedDpEvent([gaussian, hit])
    if guarantee.delta == 0:
        return dp_event.LaplaceDpEvent(1 / (2 * math.log((1 + math.exp(guarantee.epsilon)) / 2)))
    raise InputError(
        f"dp-accounting has no event for a release that is ({guarantee.epsilon:g}, {guarantee.delta:g})-private "
        "in adaptive rounds or without Gaussian noise. Compose the rest, and add this epsilon and delta to the result."
    )
