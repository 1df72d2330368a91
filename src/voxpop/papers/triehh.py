"""TrieHH: Zhu and others, "Federated Heavy Hitters Discovery with Differential Privacy", AISTATS 2020."""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, final

from voxpop.errors import BudgetError
from voxpop.mechanisms.heavy_hitters.mechanism import LONGEST_WORD, WIDEST_UNIT
from voxpop.mechanisms.heavy_hitters.plan import HittersPlan, check_delta
from voxpop.mechanisms.heavy_hitters.protocol import Rules
from voxpop.privacy.budget import Budget, check_budget, check_choice, check_whole
from voxpop.privacy.planned import Mechanism, certified
from voxpop.privacy.trie.accountant import trie_delta
from voxpop.privacy.trie.ballot import Ballot

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus  # noqa: F401
    from voxpop.release.release import Release  # noqa: F401

LEAST_THETA: Final = 10
"""The minimum threshold of Theorem 1."""
_CONSTANT: Final = 0.278


@final
@dataclass(frozen=True, slots=True)
class TrieHH(Mechanism["Corpus", "Release"]):
    """Grow a trie of the words that many users share, as in Algorithm 1 of the paper.

    In each round, a sample of the users votes for the next symbols of their words, and a prefix with at least theta
    votes is added to the trie. Each sampled user has one vote. The sampling rate and the threshold follow from Theorem
    1. Corollary 2, as printed, does not follow from Theorem 1. Therefore the rate is the rate of the corrected
    corollary, (1 - e^(-epsilon/L)) / theta instead of (1 - e^(-epsilon/L)) / 10 (docs/privacy/heavy-hitters.md).

    The paper samples a batch of fixed size. The proof in the paper does not cover such batches, because votes for
    different prefixes depend on each other within a batch (docs/privacy/heavy-hitters.md has a counterexample). Here
    each user is sampled independently, with the rate of the paper. The exact accountant of `voxpop.HeavyHitters`
    computes the guarantee of the plan.

    Attributes:
        max_length: L, the maximum number of symbols of a word, including its end mark. This number is also the number
            of rounds if `unit` is 1. The experiments of the paper use 10.
        words: With "one", each user votes for their most frequent word in all rounds (Figures 5 and 6). With "many",
            one of the user's words is drawn in proportion to its frequency in each round (Figures 7 and 8).
        unit: The number of symbols that each round adds to a prefix, from 1 to 4 (Figure 9).

    Raises:
        InputError: A field is out of range.

    Example:
        >>> import voxpop as vp
        >>> plan = TrieHH().plan(vp.Budget(epsilon=1, delta=1 / 65_876_900))
        >>> plan.theta, round(plan.sampling_rate * 658_769)
        (12, 5224)
    """

    max_length: int = 10
    words: Literal["one", "many"] = "one"
    unit: int = 1

    def __post_init__(self) -> None:
        """Check every field."""
        check_whole(
            "max_length",
            self.max_length,
            LONGEST_WORD,
            "the maximum number of symbols of a word, including its end mark",
            least=2,
        )
        check_choice("words", self.words, ("one", "many"))
        check_whole("unit", self.unit, WIDEST_UNIT, "the number of symbols that each round adds to a prefix")

    @property
    def rounds(self) -> int:
        """The number of rounds that the longest word needs."""
        return -(-self.max_length // self.unit)

    def plan(self, budget: Budget) -> HittersPlan:
        """Compute the sampling rate and the threshold from Theorem 1.

        Args:
            budget: The privacy budget of all rounds together.

        Raises:
            BudgetError: Delta is 0, or the numbers from the theorem exceed the budget in exact accounting.
        """
        check_budget(budget)
        check_delta(budget)
        theta = theorem_theta(budget.delta)
        rate = math.nextafter(corollary_rate(budget.epsilon, theta, self.rounds), 0.0)
        rules = Rules(Ballot(rate, theta), self.rounds, self.unit, self.max_length, words=self.words)
        delta = trie_delta(budget.epsilon, rules.ballot, rules.rounds, rules.words)
        if delta > budget.delta:
            raise BudgetError(
                f"The rate and threshold of Theorem 1 for epsilon {budget.epsilon:g} and delta {budget.delta:g} cost a "
                f"delta of {delta:.3g} by exact accounting. Use voxpop.HeavyHitters."
            )
        return certified(HittersPlan(self, budget, rules))

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {"mechanism": "heavy hitters", "paper": "TrieHH", "alphabet": "characters", **asdict(self)}


def theorem_delta(theta: int) -> float:
    """Return the delta of Theorem 1, with the constant that its proof supports: 1 / (0.278 theta!).

    Args:
        theta: The threshold, at least 10.
    """
    return math.exp(-math.log(_CONSTANT) - math.lgamma(theta + 1)) * (1 + 1e-12)


def theorem_theta(delta: float) -> int:
    """Return the smallest threshold with this delta in Theorem 1.

    The threshold is at least 10, as the theorem requires.

    Example:
        >>> theorem_theta(1 / 65_876_900)
        12
    """
    theta = LEAST_THETA
    while theorem_delta(theta) > delta:
        theta += 1
    return theta


def corollary_rate(epsilon: float, theta: int, rounds: int) -> float:
    """Return the largest sampling rate that Theorem 1 allows, from the corrected Corollary 2.

    Args:
        epsilon: The epsilon of Theorem 1.
        theta: The threshold.
        rounds: L, the number of rounds.

    Returns:
        The batch size divided by the number of users. This ratio is at most 1 / (theta + 1), as the theorem requires.

    Example:
        >>> round(corollary_rate(1, 12, 10) * 658_769)
        5224
    """
    # The rate is s = (1 - e^(-epsilon / L)) / theta.
    return min(-math.expm1(-epsilon / rounds) / theta, 1 / (theta + 1))
