"""Plans that run an arbitrary function, for tests of ledgers and seals."""

import voxpop as vp
from voxpop.privacy.planned import Planned, sealed


class AnyPlan(Planned):
    """A plan whose mechanism is a function of the data and whose guarantee equals its budget."""

    def _guaranteed(self):
        return vp.Guarantee(self.budget.epsilon, self.budget.delta)

    def _run(self, data, seed):
        return self.mechanism(data)

    def to_dict(self):
        return {"mechanism": "test"}

    def __str__(self):
        return "a plan"


def planned(guarantee, run):
    """Return a sealed plan that runs a function."""
    return sealed(AnyPlan(run, vp.Budget(guarantee.epsilon, guarantee.delta)), guarantee.delta)
