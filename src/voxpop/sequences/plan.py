"""Sequences with their noise filled in: what will run and what it guarantees."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast, final

from voxpop.errors import BudgetError, InputError
from voxpop.privacy.budget import Budget
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.planned import Planned
from voxpop.sequences.alphabet import MISSING
from voxpop.sequences.children import DENSE
from voxpop.sequences.path_budget import PathBudget
from voxpop.sequences.schedule import PARTS

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine
    from voxpop.sequences.limits import Limits
    from voxpop.sequences.model import SequenceModel
    from voxpop.sequences.sequences import Sequences

FEW_SYMBOLS = 1_000
SMALLEST_RATE = 2.0**-30
LARGEST_EPSILON = 1e4


def plan_sequences(mechanism: "Sequences", budget: Budget) -> "SequencePlan":
    """Check that the plan can run; see `Sequences.plan`."""
    if mechanism.alphabet is None:
        raise InputError(MISSING)
    check_epsilon(mechanism.max_length, budget.epsilon)
    return SequencePlan(mechanism, budget).checked(0.0)


def check_epsilon(max_length: int, epsilon: float) -> None:
    """Refuse an epsilon that no count can be released with.

    Raises:
        BudgetError: saying which there may be.
    """
    if not SMALLEST_RATE * max_length <= epsilon <= LARGEST_EPSILON:
        raise BudgetError(
            f"`epsilon` must lie between {SMALLEST_RATE * max_length:.2g} (for max_length {max_length:,}) and "
            f"{LARGEST_EPSILON:g}, got {epsilon:g}; 0.1 to 4 are usual."
        )


@final
@dataclass(frozen=True, slots=True, repr=False)
class SequencePlan(Planned["Sequences"]):
    """What `Sequences.plan` returns: every number that is known before any data is read.

    Deeper levels get what is left of epsilon, spread over the levels that each gram is predicted to have from its
    released counts; on no path does it add up to more than epsilon.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.Sequences(max_length=20, max_gram=5, alphabet=["a", "b", "c"], tree="grams").plan(vp.Budget(1))
        >>> plan.scale, round(plan.threshold, 2)
        (100.0, 40.55)
    """

    def _guaranteed(self) -> Guarantee:
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
    def contexts(self) -> bool:
        """Whether what follows contexts is counted, rather than grams."""
        mechanism = self.mechanism
        if mechanism.tree != "auto":
            return mechanism.tree == "contexts"
        as_now = mechanism.consistency == "balanced" and mechanism.leaves == "auto"
        return as_now and len(self.alphabet) < DENSE

    @property
    def scale(self) -> float:
        """Scale b of the noise on the counts of single symbols: P(k) is proportional to `exp(-|k| / b)`."""
        return self._paths().scale(0)

    @property
    def threshold(self) -> float:
        """What the count of a single symbol must exceed to be continued, or to be a context for itself."""
        if self.contexts:
            # Of single symbols, where all of epsilon is left: width counts times the scale of their noise.
            return (len(self.alphabet) + 1) * self.mechanism.max_length / self.budget.epsilon
        return self._paths().threshold(0)

    @property
    def limits(self) -> "Limits":
        """What bounds the exploration."""
        from voxpop.sequences.limits import Limits

        mechanism = self.mechanism
        epsilon = Fraction(self.budget.epsilon)
        return Limits(
            epsilon,
            len(self.alphabet),
            mechanism.max_length,
            mechanism.max_gram,
            keep_all=self.keeps_all,
            balanced=mechanism.consistency == "balanced",
            contexts=self.contexts,
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
            "counts": "contexts" if self.contexts else "grams",
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
                "what follows longer contexts: what is left of epsilon, most of it where contexts are split no further"
                if self.contexts
                else "longer grams: what is left of epsilon, spread over the levels they are predicted to have",
            ]
        )

    def _paths(self) -> PathBudget:
        paths = PathBudget(Fraction(self.budget.epsilon), self.mechanism.max_length, len(self.alphabet))
        if not self.contexts:
            paths.open_root(self.mechanism.max_gram)
        else:
            paths.open_first(PARTS[0] if self.mechanism.max_gram > 1 else Fraction(1))
        return paths
