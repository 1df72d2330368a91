"""Plans that run an arbitrary function, for tests of ledgers and certificates."""

from fractions import Fraction

import voxpop as vp
from voxpop.privacy.passes import PathsProof
from voxpop.privacy.planned import Planned, certified


class AnyPlan(Planned):
    """A plan that has a function of the data as its mechanism and its budget as its guarantee."""

    def _proof(self):
        return PathsProof("grams", Fraction(self.budget.epsilon), 1, 1, 1, None)

    def _run(self, data, seed):
        return self.mechanism(data)

    def to_dict(self):
        return {"mechanism": "test"}

    def __str__(self):
        return "a plan"


def planned(guarantee, run):
    """Return a checked plan that runs a function."""
    return certified(AnyPlan(run, vp.Budget(guarantee.epsilon, guarantee.delta)))
