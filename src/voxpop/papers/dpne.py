"""DPNE: Kim, Gopi, Kulkarni, Yekhanin, "Differentially Private n-gram Extraction", NeurIPS 2021.

This is Algorithm 1 with an exact count of candidates. The scalable version (Algorithm 2) estimates that number
(Algorithm 3), which invalidates its proof. docs/privacy/errata.md has the details. The algorithm uses the passes of
`voxpop.mechanisms.ngrams` with a separate schedule. Each length has one vote, which is charged to all users. The noise
is fixed before any data is read.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import fsum, nextafter
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from voxpop.errors import InputError, InternalError
from voxpop.mechanisms.ngrams.charges import NORM, ONE_SHORTER, LengthPlan, LengthRun, SpuriousAllowance, Voting
from voxpop.mechanisms.ngrams.mechanism import check_lengths, check_limit, check_spurious_share
from voxpop.mechanisms.ngrams.plan import CROWDED, NGramsPlan, rest_after, without_slack
from voxpop.mechanisms.ngrams.releasing import Keep, Outcome, Pass, State
from voxpop.mechanisms.ngrams.votes import ThresholdVote
from voxpop.mechanisms.rounds.plan import RoundPlan
from voxpop.privacy.budget import Budget, check_budget, check_choice, check_within
from voxpop.privacy.calibrate import calibrate
from voxpop.privacy.individual import noise_for
from voxpop.privacy.numerics import walk_slack
from voxpop.privacy.planned import Mechanism, certified
from voxpop.privacy.weightings.builtin import WEIGHTINGS
from voxpop.privacy.weightings.rule import RuleSetting

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus  # noqa: F401
    from voxpop.release.release import Release  # noqa: F401

RULES = ("weighted", "policy-gaussian")
ROUGH_BITS = 48
"""The number of bits of the grid for the first estimate of the cutoff at length 1."""


@final
@dataclass(frozen=True, slots=True)
class DPNE(Mechanism["Corpus", "Release"]):
    """Extract n-grams as published (Algorithm 1).

    Theorem 2.1 gives the guarantee, with half of delta for the noise of all lengths together and half for the threshold
    of length 1. The defaults are the parameters of Table 3 (Reddit), at epsilon 4 and delta 1e-7. Table 4 (MSNBC) has
    `max_length=6, max_phrases_per_user=10` at epsilon 1 and delta 1e-7. `voxpop.NGrams` releases more for the same
    budget.

    Attributes:
        max_length: The maximum number of tokens in a gram, T.
        max_phrases_per_user: The maximum number of grams per user at each length, Delta_k, as a single number or as one
            number for each length.
        max_spurious_share: The expected share of grams without users, which determines rho_k for k > 1 (Section 2).
        weighting: "weighted" is the Weighted Gaussian policy of Algorithm 1. "policy-gaussian" is the Policy Gaussian
            of DPSU (Gopi et al., 2020, Algorithm 5), which the paper permits instead.
        ratio: The factor c in sigma_k = c sigma_(k-1) (Figure 3). With 1, all lengths have equal noise, as in Tables 3
            and 4.
        pruning: "both" requires that the prefix and the suffix of a candidate are released. "single" requires its
            prefix and its last token (Figure 4).
        alpha: The distance from the threshold to the cutoff at which weight stops increasing, in sigma (only for
            "policy-gaussian").

    Raises:
        InputError: A field is out of range.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.papers.DPNE().plan(vp.Budget(epsilon=4, delta=1e-7))
        >>> round(plan.first.scale, 5), round(plan.first.threshold, 3)
        (3.98371, 24.438)
    """

    max_length: int = 9
    max_phrases_per_user: int | Sequence[int] = 100
    max_spurious_share: float = 0.01
    weighting: Literal["weighted", "policy-gaussian"] = "weighted"
    ratio: float = 1.0
    pruning: Literal["both", "single"] = "both"
    alpha: float = 5.0

    def __post_init__(self) -> None:
        """Check every field, and store lists as tuples."""
        check_lengths(self.max_length)
        if isinstance(self.max_phrases_per_user, Sequence):
            if len(self.max_phrases_per_user) != self.max_length:
                raise InputError(
                    f"`max_phrases_per_user` must be one number or {self.max_length}, one for each length; "
                    f"got {len(self.max_phrases_per_user)}."
                )
            object.__setattr__(self, "max_phrases_per_user", tuple(self.max_phrases_per_user))
        for limit in self.limits:
            check_limit(limit)
        check_spurious_share(self.max_spurious_share)
        check_choice("weighting", self.weighting, RULES)
        check_within(
            "ratio", self.ratio, 0.1, 10.0, "the ratio of sigma to that of the previous length; 0.8 to 1.4 are usual"
        )
        check_choice("pruning", self.pruning, ("both", "single"))
        check_within(
            "alpha", self.alpha, 0.0, 1000.0, "the distance from the threshold to the cutoff, in sigma; 5 is usual"
        )

    @property
    def limits(self) -> tuple[int, ...]:
        """The contribution limit of each length."""
        limit = self.max_phrases_per_user
        return tuple(limit) if isinstance(limit, Sequence) else (limit,) * self.max_length

    @property
    def shares(self) -> tuple[float, ...]:
        """The share of each length in the total mu^2. Shares are proportional to 1 / sigma^2."""
        raw = [self.ratio ** (-2 * number) for number in range(self.max_length)]
        return tuple(share / fsum(raw) for share in raw)

    def voting(self, length: int) -> Voting:
        """Return the parameters of the vote on one length."""
        return Voting(WEIGHTINGS[self.weighting], self.limits[length - 1], self.max_spurious_share, self.alpha)

    def plan(self, budget: Budget) -> NGramsPlan:
        """Compute the noise and the thresholds for a budget, without data.

        Raises:
            BudgetError: No threshold can satisfy the budget.
        """
        check_budget(budget)
        slack = walk_slack(budget.epsilon, self.max_length)
        exact, share = without_slack(budget, slack), self.shares[0]
        first = _first(self, exact, share)
        more = self.max_length > 1
        later = rest_after((first.shares.sensitivity / first.scale) ** 2, share) if more else 0.0
        # Length 1 is followed by Gaussian releases with a total mu^2 of M (docs/privacy/ngrams.md, "With length 1").
        return certified(NGramsPlan(self, budget, first, later, _longer(self, later), slack, paper_schedule))

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        limit = self.max_phrases_per_user
        return {
            "mechanism": "n-grams",
            "algorithm": "DPNE",
            **asdict(self),
            "max_phrases_per_user": limit if isinstance(limit, int) else list(limit),
            "noise": "gaussian",
        }


def _first(dpne: DPNE, budget: Budget, share: float) -> RoundPlan:
    """Return the plan of the set union for length 1, with the accounting of the paper.

    The rest of the budget is for later lengths.
    """
    voting = dpne.voting(1)
    # This ratio is the joint mu of all later lengths divided by mu_1.
    rest = (1 / share - 1) ** 0.5
    rough = RuleSetting(voting.limit, NORM, bits=ROUGH_BITS)
    coarse = calibrate(budget, voting.rule.novelty(rough), accounting="published", rest=rest)
    setting = RuleSetting(voting.limit, NORM, voting.rule.bits(coarse.threshold + voting.alpha * coarse.scale + 1.0))
    sensitivity = voting.rule.sensitivity(setting)
    found = calibrate(
        budget,
        voting.rule.novelty(setting),
        accounting="published",
        sensitivity=sensitivity,
        grid=2.0**-setting.bits,
        rest=rest * sensitivity,
    )
    return voting.round(setting, found.scale, found.threshold)


def squares(dpne: DPNE, later: float) -> list[float]:
    """Return the mu^2 of each length from 2 on. The exact sum of these values is at most `later`."""
    # The noise of a length may depend on earlier results. The privacy loss of all lengths together equals the loss of
    # one Gaussian mechanism, because these squares add up to at most `later` on every path (docs/privacy/ngrams.md,
    # "Noise chosen from results").
    left, found = Fraction(later), []
    for number in range(1, dpne.max_length):
        rest = float(left) if Fraction(float(left)) <= left else nextafter(float(left), 0.0)
        last = number == dpne.max_length - 1
        found.append(rest if last else rest * min(1.0, dpne.shares[number] / fsum(dpne.shares[number:])))
        left -= Fraction(found[-1])
    return found


def settled(dpne: DPNE, length: int, square: float, released: int, candidates: int) -> RoundPlan:
    """Return the vote on a length.

    The charge of the vote determines sigma, and the number of candidates determines rho (Section 2).
    """
    voting = dpne.voting(length)
    setting = voting.setting(square, released, candidates)
    sigma = noise_for(square, voting.rule.sensitivity(setting))
    return voting.charged(setting, sigma, voting.threshold(sigma, released, candidates), square)


def _longer(dpne: DPNE, later: float) -> tuple[LengthPlan, ...]:
    lengths = []
    for length, square in enumerate(squares(dpne, later), start=2):
        vote = settled(dpne, length, square, 1, CROWDED)
        low, high = (dpne.voting(length).threshold(vote.scale, 1, many) for many in (1, CROWDED))
        allowed = SpuriousAllowance(dpne.max_spurious_share, ONE_SHORTER)
        lengths.append(LengthPlan(length, vote.scale, None, low, high, allowed))
    return tuple(lengths)


def paper_schedule(state: State) -> Pass | None:
    """Return the next vote, or None at the end."""
    plan = state.plan
    if not isinstance(plan.mechanism, DPNE) or not isinstance(plan.first, RoundPlan):
        raise InternalError("the plan of another mechanism would run as DPNE")
    if not state.grams:
        words = ThresholdVote.of(None, plan.first.rule(plan.budget), np.empty(0))
        return Pass("words", 1, plan.first.shares, plan.first.scale, state.with_words, vote=words)
    single = plan.mechanism.pruning == "single"
    valid = state.valid(single=single)
    if valid is None:
        return None
    square = squares(plan.mechanism, plan.later)[state.length - 2]
    vote = settled(plan.mechanism, state.length, square, state.before, valid.count)
    threshold = ThresholdVote.of(valid, vote.rule(plan.budget), np.empty(0))

    def after(outcome: Outcome) -> State:
        # All candidates that reached the threshold are released.
        weight = float(threshold.thresholds[0])
        spurious = float(threshold.rules[0].probability(np.zeros(1, np.int64))[0][0]) * valid.count
        bands = ((valid.count, weight, outcome.names.size),)
        ran = LengthRun(state.length, vote.scale, None, valid.count, weight, spurious, bands)
        grams = (*state.grams, state.grams[-1].longer(outcome.names, single=single))
        return replace(state, grams=grams, ran=(*state.ran, ran), keep=Keep(outcome.names, None))

    return Pass("vote", state.length, vote.shares, vote.scale, after, vote=threshold, keep=state.keep, extend=valid)
