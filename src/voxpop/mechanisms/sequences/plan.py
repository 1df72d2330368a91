"""The plans of sequences, with the noise and the guarantee that follow from a budget."""

from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
from typing import TYPE_CHECKING, Any, ClassVar, cast, final

from voxpop.engine.contract import check_engine, check_ordered
from voxpop.errors import BudgetError, InputError
from voxpop.files.progress import rounded, tell
from voxpop.mechanisms.sequences.constants import (
    EPSILON_PARTS,
    FIND,
    FIND_SHARE,
    LEAST_COUNTED,
    PER_NOISE,
    USUAL_LENGTH,
)
from voxpop.mechanisms.sequences.model import SequenceModel
from voxpop.mechanisms.sequences.releasing import (
    least_total,
    part_after_statistics,
    part_of_lengths,
    part_of_variety,
    split_contexts,
)
from voxpop.mechanisms.set_union.mechanism import Items
from voxpop.privacy.budget import Budget
from voxpop.privacy.passes import Claim, PathsProof
from voxpop.privacy.path_budget import Limits, PathBudget
from voxpop.privacy.planned import Planned, certified, with_record

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus
    from voxpop.mechanisms.sequences.mechanism import Sequences
    from voxpop.mechanisms.sequences.model import SequenceModel

SMALLEST_RATE = 2.0**-30
LARGEST_EPSILON = 1e4
_MISSING = (
    "`alphabet` is missing: Sequences needs the list of all tokens that may occur, and the list must be public, "
    'because noise hides how often a token occurs and not which tokens exist. Pass the list (alphabet=["home", "news"])'
    ' or alphabet="find" (--alphabet find), which finds it with a quarter of epsilon and all of delta.'
)


SPELLING = "If this share is large, compare the spelling of its symbols with the values of the column."


def plan_sequences(mechanism: "Sequences", budget: Budget) -> "SequencePlan":
    """Return the plan after checking that it can run; see `Sequences.plan`."""
    if mechanism.alphabet is None:
        raise InputError(_MISSING)
    plan = SequencePlan(mechanism, budget)
    if plan.finding is not None and not budget.delta > 0.0:
        raise BudgetError(
            'alphabet="find" finds the tokens only with a delta above 0. Use a budget such as Budget(1, 1e-7).'
        )
    check_epsilon(mechanism.most, plan.counting.epsilon)
    return certified(plan)


def check_epsilon(max_length: int, epsilon: float) -> None:
    """Check that counts can be released with an epsilon.

    Raises:
        BudgetError: Epsilon is too small or too large. The message contains the allowed range.
    """
    if not SMALLEST_RATE * max_length <= epsilon <= LARGEST_EPSILON:
        raise BudgetError(
            f"`epsilon` must be between {SMALLEST_RATE * max_length:.2g} (for max_length {max_length:,}) and "
            f"{LARGEST_EPSILON:g}, got {epsilon:g}; 0.1 to 4 are usual."
        )


@final
@dataclass(frozen=True, slots=True, repr=False)
class SequencePlan(Planned["Sequences", "Corpus", "SequenceModel"]):
    """The plan that `Sequences.plan` returns, which contains every number that is known before any data is read.

    Longer contexts get the rest of epsilon. The shares on each path of the tree add up to at most epsilon.

    Attributes:
        found: The alphabet that a release found, if the mechanism has alphabet="find".

    Example:
        >>> import voxpop as vp
        >>> plan = vp.Sequences(max_length=20, alphabet=["a", "b", "c"]).plan(vp.Budget(1))
        >>> round(plan.scale), round(plan.threshold)
        (495, 104)
        >>> plan = vp.Sequences(alphabet="find").plan(vp.Budget(2, 1e-7))
        >>> print(plan.guarantee)
        (2, 1e-07)-DP, one user added or removed
        >>> plan.finding, plan.counting
        (Budget(epsilon=0.5, delta=1e-07), Budget(epsilon=1.5, delta=0.0))
    """

    _recorded: ClassVar = frozenset({"found"})

    found: tuple[str, ...] | None = None

    def _proof(self) -> PathsProof:
        mechanism, found, alphabet = self.mechanism, None, self.mechanism.alphabet
        if self.finding is not None:
            # By basic composition, the epsilons of both steps add up to at most the epsilon of the budget.
            alphabet, found = None, self._finder().plan(self.finding).certificate
        size = None if alphabet is None else len(self.alphabet or ())
        whole = Fraction(self.counting.epsilon)
        usual = USUAL_LENGTH if mechanism.max_length is None else None
        rule = LEAST_COUNTED, PER_NOISE, usual
        return PathsProof("contexts", whole, size, mechanism.most, mechanism.max_gram, found, *rule)

    @property
    def _claim(self) -> Claim:
        return Claim(self.budget.epsilon, 0.0 if self.finding is None else self.budget.delta)

    def _finder(self) -> Items:
        return Items(max_items_per_user=self.mechanism.usual)

    @property
    def finding(self) -> Budget | None:
        """The budget for finding the alphabet, or None if the alphabet is given."""
        if self.mechanism.alphabet != FIND:
            return None
        return Budget(self.budget.epsilon * FIND_SHARE, self.budget.delta)

    @property
    def counting(self) -> Budget:
        """The budget for counting."""
        if self.finding is None:
            return Budget(self.budget.epsilon)
        # Use exact fractions, because both steps together must not spend more than the whole budget.
        rest = Fraction(self.budget.epsilon) - Fraction(self.finding.epsilon)
        nearest = float(rest)
        return Budget(nearest if Fraction(nearest) <= rest else nextafter(nearest, -inf), 0.0)

    @property
    def alphabet(self) -> tuple[str, ...] | None:
        """The public symbols in the order of their bytes, or None if the release has not found them yet."""
        symbols = self.found if self.finding is not None else cast("tuple[str, ...]", self.mechanism.alphabet)
        if symbols is None or self.mechanism.other is None:
            return symbols
        # A token that was found can have the same spelling as the symbol for all other tokens.
        return tuple(sorted({*symbols, self.mechanism.other}))

    @property
    def scale(self) -> float:
        """The scale b of the noise on the counts of single symbols. P(k) is proportional to `exp(-|k| / b)`.

        With a `max_length`, this is the largest possible scale. The actual scale is smaller if the released lengths
        show that there are many users or few steps. Without a `max_length`, it is the largest possible scale only if
        the tree counts at most 20 steps. If the tree counts more steps because released lengths show longer sequences,
        the scale is larger in proportion, by a factor of up to 50. The column `scale` of `SequenceModel.to_polars`
        contains the actual scale.
        """
        paths, root = self._root()
        return paths.scale(root)

    @property
    def threshold(self) -> float | None:
        """The minimum number of occurrences that makes a symbol a separate context.

        The value is None before the alphabet is found, and if no grams of two symbols are counted.
        """
        if self.alphabet is None or self.mechanism.max_gram == 1:
            return None
        paths, root = self._root()
        return float(least_total(paths.limits, float(paths.left(root)), 0))

    def _root(self) -> tuple[PathBudget, int]:
        """Return the account of all paths, and the index of the smallest share that the root can spend."""
        paths = PathBudget(self._limits(len(self.alphabet or ())))
        spent = paths.spend(0, 1 - part_after_statistics(paths.limits.epsilon, 0))
        return paths, paths.spend(spent, EPSILON_PARTS[0] if self.mechanism.max_gram > 1 else Fraction(1))

    def _run(self, data: "Corpus", seed: int | None) -> "SequenceModel":
        engine = check_engine(data)
        check_ordered(engine)
        gate, guarantee = self.begin(seed)
        plan = self if self.finding is None else with_record(self, found=self._find(data, seed))
        alphabet = plan.alphabet or ()
        # On a cluster, this would need another pass.
        outside, other = getattr(engine, "outside", None) if self.finding is None else None, self.mechanism.other
        if outside is not None and (left := outside(alphabet)):
            done = "were removed" if other is None else "count as the symbol for all others"
            tell(f"{rounded(left)} of the events are outside of the alphabet and {done}. {SPELLING}", None)
        gate.open(engine, alphabet, other)
        tree, profile = split_contexts(gate)
        return SequenceModel(alphabet, tree, profile, with_record(plan, gate), guarantee)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **self.mechanism.to_dict(),
            "alphabet_size": None if self.alphabet is None else len(self.alphabet),
            "epsilon": self.budget.epsilon,
            "delta": self._claim.delta,
            **({} if self.finding is None else {"epsilon_to_count": self.counting.epsilon}),
            "passes": self._rows(),
        }

    def _rows(self) -> list[dict[str, Any]]:
        """Return one row per type of pass. The row of the levels contains the numbers of the first level."""
        finding, epsilon = self.finding, self._limits(0).epsilon
        part, variety = part_of_lengths(epsilon), part_of_variety(epsilon, 0)
        levels = {"levels": self.mechanism.max_gram, "sensitivity": self.mechanism.usual}
        return [
            *([] if finding is None else [{"pass": "finding", "epsilon": finding.epsilon, "delta": finding.delta}]),
            {"pass": "lengths", "part": str(part), "scale": float(1 / (part * epsilon))},
            # The released lengths determine the actual part and the actual sensitivity.
            {"pass": "variety", "largest_part": str(variety)},
            {"pass": "level", **levels, "scale": self.scale, "threshold": self.threshold},
        ]

    def _limits(self, alphabet: int) -> Limits:
        return Limits(Fraction(self.counting.epsilon), alphabet, self.mechanism.usual, self.mechanism.max_gram)

    def _find(self, data: "Corpus", seed: int | None) -> tuple[str, ...]:
        """Return the tokens that a set union with a part of the budget releases."""
        words = self._finder().release(data, cast("Budget", self.finding), seed=seed)
        if not len(words):
            raise InputError(
                "no token has enough users to be released, so no alphabet was found; the budget for finding it is "
                "spent. Use data from more users, or a larger epsilon."
            )
        # Items of a release are in the order of their bytes.
        return tuple(gram[0] for gram in words.each_gram())
