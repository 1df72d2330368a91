"""Sequences with their noise filled in: what will run and what it guarantees."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast, final

from voxpop.errors import BudgetError, InputError
from voxpop.privacy.budget import Budget
from voxpop.privacy.guarantee import Guarantee
from voxpop.sequences.alphabet import MISSING
from voxpop.sequences.ledger import Ledger

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine
    from voxpop.sequences.exploring import Limits
    from voxpop.sequences.model import SequenceModel
    from voxpop.sequences.sequences import Sequences

FEW_SYMBOLS = 1_000
SMALLEST_RATE = 2.0**-30
LARGEST_EPSILON = 1e4


def plan_sequences(mechanism: "Sequences", budget: Budget) -> "SequencePlan":
    """Check that the plan can run; see `Sequences.plan`."""
    if mechanism.alphabet is None:
        raise InputError(MISSING)
    if not SMALLEST_RATE * mechanism.max_length <= budget.epsilon <= LARGEST_EPSILON:
        raise BudgetError(
            f"`epsilon` must lie between {SMALLEST_RATE * mechanism.max_length:.2g} (for max_length "
            f"{mechanism.max_length:,}) and {LARGEST_EPSILON:g}, got {budget.epsilon:g}; 0.1 to 4 are usual."
        )
    return SequencePlan(mechanism, budget)


@final
@dataclass(frozen=True, slots=True)
class SequencePlan:
    """What `Sequences.plan` returns: every number that is known before any data is read.

    Deeper levels get what is left of epsilon, spread over the levels that each gram is predicted to have from its
    released counts; on no path does it add up to more than epsilon.

    Attributes:
        mechanism: the sequences that were planned.
        budget: what may be spent.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.Sequences(max_length=20, max_gram=5, alphabet=["a", "b", "c"]).plan(vp.Budget(1))
        >>> plan.scale, round(plan.threshold, 2)
        (100.0, 40.55)
    """

    mechanism: "Sequences"
    budget: Budget

    @property
    def guarantee(self) -> Guarantee:
        """What a release of this plan guarantees."""
        return Guarantee(self.budget.epsilon, 0.0)

    @property
    def alphabet(self) -> tuple[str, ...]:
        """The public symbols, in order of their bytes."""
        return cast("tuple[str, ...]", self.mechanism.alphabet)

    @property
    def keeps_all(self) -> bool:
        """Whether every continuation is kept at the root and at the last level."""
        if self.mechanism.leaves == "auto":
            return self.mechanism.consistency == "published" and len(self.alphabet) <= FEW_SYMBOLS
        return self.mechanism.leaves == "all"

    @property
    def scale(self) -> float:
        """Scale b of the noise on the counts of single symbols: P(k) is proportional to `exp(-|k| / b)`."""
        return self._ledger().scale(0)

    @property
    def threshold(self) -> float:
        """What the noisy count of a single symbol must exceed to be continued."""
        return self._ledger().threshold(0)

    @property
    def limits(self) -> "Limits":
        """What bounds the exploration."""
        from voxpop.sequences.exploring import Limits

        mechanism = self.mechanism
        epsilon = Fraction(self.budget.epsilon)
        return Limits(
            epsilon,
            len(self.alphabet),
            mechanism.max_length,
            mechanism.max_gram,
            keep_all=self.keeps_all,
            balanced=mechanism.consistency == "balanced",
        )

    def release(self, corpus: "Engine", seed: int | None = None) -> "SequenceModel":
        """Run the plan on a corpus; see `Sequences.release`.

        Raises:
            InputError: where the corpus holds items, which have no order.
        """
        from voxpop.sequences.releasing import release_sequences

        return release_sequences(self, corpus, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **self.mechanism.to_dict(),
            "keeps_all": self.keeps_all,
            "epsilon": self.budget.epsilon,
            "delta": 0.0,
            "sensitivity": self.mechanism.max_length,
            "scale": self.scale,
            "threshold": self.threshold,
        }

    def __str__(self) -> str:
        """Return the plan as a person reads it."""
        plan = self.to_dict()
        return "\n".join(
            [
                f"Sequences of at most {plan['max_length']:,} of {plan['alphabet_size']:,} symbols, grams of up to "
                f"{plan['max_gram']}, one sequence per user ({plan['combine']})",
                f"{self.guarantee}; integer Laplace noise",
                f"single symbols: scale {self.scale:.6g}, continued above {self.threshold:.6g}",
                "longer grams: what is left of epsilon, spread over the levels they are predicted to have",
            ]
        )

    def _ledger(self) -> Ledger:
        ledger = Ledger(Fraction(self.budget.epsilon), self.mechanism.max_length, len(self.alphabet))
        ledger.open_root(self.mechanism.max_gram)
        return ledger
