"""An alphabet found with part of the budget, and a model over it with the rest: one call, one guarantee."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, nextafter
from typing import TYPE_CHECKING, Any, final

from voxpop.errors import BudgetError, InputError
from voxpop.mechanisms import configuration
from voxpop.privacy.budget import Budget
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.planned import Planned
from voxpop.sequences.plan import check_epsilon, plan_sequences
from voxpop.sequences.schedule import FIND_SHARE

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine
    from voxpop.sequences.model import SequenceModel
    from voxpop.sequences.plan import SequencePlan
    from voxpop.sequences.sequences import Sequences

FINDER = "set union"
"""The mechanism that finds it: sequences know it by this name alone."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class FindingPlan(Planned["Sequences"]):
    """What `Sequences(alphabet="find").plan` returns: two steps and what they guarantee together.

    Attributes:
        counted: the plan of the second step, known once the alphabet is found: that of a model, none before.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.Sequences(alphabet="find").plan(vp.Budget(2, 1e-7))
        >>> print(plan.guarantee)
        (2, 1e-07)-DP, one user added or removed
        >>> plan.finding, plan.counting
        (Budget(epsilon=0.5, delta=1e-07), Budget(epsilon=1.5, delta=0.0))
    """

    counted: "SequencePlan | None" = None

    def _guaranteed(self) -> Guarantee:
        # Of both steps together: their epsilons add up to no more than the budget's.
        return Guarantee(self.budget.epsilon, self.budget.delta)

    @property
    def finding(self) -> Budget:
        """What finding the alphabet may spend."""
        return Budget(self.budget.epsilon * FIND_SHARE, self.budget.delta)

    @property
    def counting(self) -> Budget:
        """What the model may spend."""
        # Exact: what finding and counting spend must not add up to more than the whole.
        whole, found = Fraction(self.budget.epsilon), Fraction(self.finding.epsilon)
        rest = float(whole - found)
        return Budget(rest if Fraction(rest) <= whole - found else nextafter(rest, -inf), 0.0)

    def release(self, corpus: "Engine", seed: int | None = None) -> "SequenceModel":
        """Find the alphabet, then count over it; see `Sequences.release`.

        Raises:
            InputError: where no token was held by enough users, or the corpus holds items, which have no order.
        """
        from voxpop.sequences.releasing import check_order

        check_order(corpus)
        guarantee = self.guaranteed(private=seed is None)
        words = configuration(FINDER)(limit=self.mechanism.max_length).release(corpus, self.finding, seed)
        if not len(words):
            raise InputError(
                "no token was held by enough users to be released, so there is no alphabet; the part of the budget for "
                "finding it is spent. It takes more users or a larger epsilon."
            )
        counted = plan_sequences(replace(self.mechanism, alphabet=words), self.counting)
        model = counted.release(corpus, seed)
        return replace(model, guarantee=guarantee, plan=self.noting(counted=counted))

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **(self.mechanism if self.counted is None else self.counted).to_dict(),
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "epsilon_to_find": self.finding.epsilon,
            "epsilon_to_count": self.counting.epsilon,
        }

    def __str__(self) -> str:
        """Return the plan as a person reads it."""
        return "\n".join(
            [
                f"Sequences of at most {self.mechanism.max_length:,} symbols of an alphabet that is found first",
                f"{self.guarantee}",
                f"finding the alphabet: epsilon {self.finding.epsilon:.6g}, delta {self.finding.delta:.6g} (set union)",
                f"counting over it: epsilon {self.counting.epsilon:.6g}",
                *([] if self.counted is None else ["", str(self.counted)]),
            ]
        )


def plan_finding(mechanism: "Sequences", budget: Budget) -> FindingPlan:
    """Check that both steps can run; see `Sequences.plan`."""
    if not budget.delta > 0.0:
        raise BudgetError('alphabet="find" needs a delta above 0, such as Budget(1, 1e-7): finding tokens costs one.')
    if mechanism.tree == "contexts" or mechanism.leaves == "all":
        raise InputError(
            'alphabet="find" may find more symbols than tree="contexts" or leaves="all" can have, when the budget is '
            'spent: use tree="auto" and leaves="auto", which go by what is found.'
        )
    plan = FindingPlan(mechanism, budget)
    check_epsilon(mechanism.max_length, plan.counting.epsilon)
    return plan.checked(plan.finding.delta)
