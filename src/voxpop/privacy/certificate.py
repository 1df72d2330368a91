"""Compute the delta of a certificate from nothing but its numbers (`check`).

Planners (calibration, searches, menus, allocation) propose numbers. This module uses the formulas of the proofs to
decide whether the numbers support the claim. It imports no planner. docs/privacy/certificate.md describes the schema
and the formulas.
"""

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, singledispatch
from math import hypot, isqrt, nextafter, sqrt
from typing import Any

from scipy.special import ndtr, ndtri

from voxpop.errors import InternalError
from voxpop.kernels.proved import proved
from voxpop.privacy import precise
from voxpop.privacy.cumulative import Caps, CumulativeScore, any_release, novel_release, proved_tails
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.privacy.gaussian import release_probability
from voxpop.privacy.guarantee import Expense, gaussian_spend
from voxpop.privacy.individual import BOUND_STEPS, MOST_BOUND, WHOLE, Charge
from voxpop.privacy.joint import ROUNDING, threshold_delta
from voxpop.privacy.numerics import draw_slack, numerical_slack, paired_pool, walk_slack
from voxpop.privacy.passes import (
    AdaptiveProof,
    Bounding,
    Certificate,
    Choice,
    Claim,
    CountsProof,
    KeysProof,
    Later,
    NightsProof,
    PathsProof,
    PicksProof,
    Rounds,
    SelectionProof,
    Slack,
    Threshold,
    ThresholdProof,
    VotesProof,
)
from voxpop.privacy.peeling import picks_spend, spent
from voxpop.privacy.trie.accountant import trie_delta
from voxpop.privacy.trie.ballot import Ballot
from voxpop.privacy.truncated import keys_delta
from voxpop.privacy.upcrossing import ever_reached, exact_scores, proved_levels, spreads_of
from voxpop.privacy.weightings.builtin import WEIGHTINGS, PolicyGaussian, is_proved
from voxpop.privacy.weightings.capped import CappedDescent, on_lattice
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting

NEGLIGIBLE = 1e-4
"""A crude bound on the probability that novel items are released replaces the exact recursion if it is below this share
of the delta of one data set (or of the cap on this probability if the rounds are chosen privately).
"""
_MOST_UNITS = 2**62
CAPPED = "capped"


def check(certificate: Certificate) -> float:
    """Return the delta that the numbers of a certificate spend at its epsilon, rounded up.

    Args:
        certificate: The certificate. It is valid if the result is at most the delta that it claims.

    Raises:
        InternalError: A number is outside the range that its proof allows.
    """
    claim = certificate.claim
    _ensure(claim.epsilon > 0.0 and 0.0 <= claim.delta < 1.0 and claim.neighbours == Claim(1.0, 0.0).neighbours)
    return min(1.0, _delta(certificate.proof, claim))


def _ensure(holds: bool) -> None:
    if not holds:
        raise InternalError("a certificate has numbers to which its proof does not apply")


@singledispatch
def _delta(proof: Any, claim: Claim) -> float:
    raise InternalError("a certificate names a proof that does not exist")


# Weightings and their sensitivities.


def calibrated_rule(bounding: Bounding) -> CalibratedRule:
    """Return the weighting and setting of a pass, which determine the sensitivity and the weights of novel items."""
    named = [each for each in WEIGHTINGS.values() if (each.name, each.norm) == (bounding.name, bounding.norm)]
    _ensure(len(named) == 1)
    return CalibratedRule(named[0], _setting(bounding, sequential=named[0].sequential))


@proved("set-union.md#items-that-only-the-extra-user-has")
def _setting(bounding: Bounding, *, sequential: bool) -> RuleSetting:
    """Return a setting in which weights fit in 64 bits and items at weight 0 can receive an equal share.

    Proof: "descents give items at 0 the largest step, and for this reason the cutoff is at least 1"
    """
    setting = RuleSetting(bounding.limit, bounding.norm, bounding.bits, bounding.cutoff, bounding.bound)
    _ensure(bounding.limit >= 1 and 0 <= bounding.bits <= 62 and bounding.bound in (1, MOST_BOUND))
    # The cutoff plus a step is below 2^63 (docs/privacy/set-union.md, "What integers and doubles change").
    fits = bounding.bound * setting.unit <= bounding.bound * bounding.cutoff <= bounding.bound * _MOST_UNITS
    _ensure(fits if sequential else bounding.cutoff == 0)
    return setting


def bounding_of(shares: CalibratedRule) -> Bounding:
    """Return the numbers that determine the sensitivity of a weighting."""
    rule, setting = shares.weighting_rule, shares.setting
    numbers = setting.norm, setting.limit, setting.bits, setting.cutoff, setting.bound
    # The name of a weighting is not sufficient, because a derived class can have the same name but other weights.
    _ensure(is_proved(rule))
    return Bounding(rule.name, *numbers)


@lru_cache(maxsize=64)
@proved("adaptive.md#the-projection")
def caps_of(rounds: Rounds) -> Caps:
    """Return the caps of rounds.

    Proof: "With k items at the cap, the other items share 1 - k a^2.
    This number is exact, because caps are whole multiples of 2^-30. It is at least a^2 / 4"
    """
    caps = Caps(rounds.caps.items, rounds.caps.weights, rounds.caps.chances)
    _ensure(caps.items[-1] == rounds.pool and caps.items[0] >= 1)
    _ensure(all(len(level) == len(rounds.later) for level in caps.weights))
    # The charge for rounding is correct only for caps on the lattice (docs/privacy/adaptive.md, "The projection").
    _ensure(all(map(on_lattice, {cap for level in caps.weights for cap in level})))
    _ensure(all(0.0 < chance <= 1.0 for chance in caps.chances))
    return caps


def capped(rounds: Rounds, number: int) -> CappedDescent:
    """Return the weighting of a later round."""
    bounding = rounds.later[number].bounding
    _ensure((bounding.name, bounding.norm, bounding.bound) == (CAPPED, 2, 1))
    return CappedDescent(_setting(bounding, sequential=True), caps_of(rounds), number)


@proved("adaptive.md#what-integers-and-doubles-change")
def score_of(rounds: Rounds) -> CumulativeScore:
    """Return the cumulative score of later rounds, with the sensitivities that were charged.

    Proof: "thresholds and drop thresholds are moved by half a cell per round and 1e-9 to the safe side before the bound
    is computed"
    """
    later = rounds.later
    _ensure(len(later) >= 1 and later[-1].drop is None)
    drops = [each.drop for each in later if each.drop is not None]
    _ensure(len(drops) == len(later) - 1 and rounds.margin >= 0.0)
    mus, parts, thresholds = (tuple(getattr(each, name) for each in later) for name in ("mu", "part", "threshold"))
    return CumulativeScore(mus, parts, thresholds, tuple(drops), rounds.margin)


# Numbers for the composition of releases (docs/privacy/composition.md).


def spend_of(certificate: Certificate) -> Expense | None:
    """Return the numbers for composition, rounded up, or None if the release composes only by epsilon and delta."""
    proof, epsilon = certificate.proof, certificate.claim.epsilon
    if isinstance(proof, AdaptiveProof) and not proof.data_sets:
        novel, mu = pair_of(proof)
        slack = slack_delta(proof.slack, epsilon) + _later_slack(proof.later, certificate.claim)
        return replace(gaussian_spend([(min(1.0, novel), mu)], slack, _rest(proof.later)), two_sided=True)
    if isinstance(proof, ThresholdProof) and proof.first.noise == "gaussian":
        pair = _first_novel(proof.first), calibrated_rule(proof.first.bounding).sensitivity / proof.first.scale
        slack = numerical_slack(epsilon) + _later_slack(proof.later, certificate.claim)
        return gaussian_spend([pair], slack, _rest(proof.later))
    if isinstance(proof, CountsProof):
        # Use the largest mu of the menu instead of the mu of the chosen limit, because the charge must not depend on
        # the choice.
        mu = max(root_above(max(1, sum(each.limits))) / each.sigma for each in proof.menu)
        square = proof.classes_sigma**-2 if proof.classes_sigma else 0.0
        return gaussian_spend([(0.0, mu)], _counts_slack(proof, epsilon), square)
    if isinstance(proof, PicksProof):
        return picks_spend(epsilon, max(1, proof.picks), max(1, proof.candidates), proof.rate)
    if isinstance(proof, NightsProof):
        novel = min(1.0, _night_hit(proof) * ROUNDING + walk_slack(epsilon, len(proof.costs)))
        return Expense(novel, sqrt(proof.square) * ROUNDING, two_sided=True)
    return None


# Adaptive rounds.


@lru_cache(maxsize=64)
@proved("adaptive.md#shared-items")
def mus_of(rounds: Rounds) -> tuple[float, ...]:
    """Return the mu of every round, which is the ratio of the sensitivity to the sigma of the round.

    Proof: "So the weights of the shared items move by at most S_r in l2."
    """
    shown = []
    if rounds.first is not None:
        shares = calibrated_rule(rounds.first.bounding)
        _ensure(rounds.first.noise == "gaussian" and rounds.first.scale > 0.0)
        shown.append(shares.sensitivity / rounds.first.scale)
    margin = 0.0
    for number, each in enumerate(rounds.later):
        sensitivity = capped(rounds, number).sensitivity
        _ensure(each.sigma > 0.0 and each.part > 0.0 and each.cell >= 1)
        # This comparison is exact. The score must have been charged for a shift of at least S / sigma.
        _ensure(Fraction(sensitivity) <= Fraction(each.mu) * Fraction(each.sigma))
        shown.append(sensitivity / each.sigma)
        margin = hypot(margin, each.cell / (1 << each.bounding.bits) / each.sigma)
    # The margin is half a cell per round.
    _ensure(margin / 2 <= rounds.margin)
    return tuple(shown)


@lru_cache(maxsize=64)
@proved("adaptive.md#shared-items")
def square_of(rounds: Rounds) -> Fraction:
    """Return the exact sum of mu^2 over all rounds, given the sensitivities as doubles.

    Proof: "Its mu^2 is the sum of S_r^2/sigma_r^2 over all rounds"
    """
    mus_of(rounds)  # raises an error if a round has less noise than its score was charged for
    squares = [(Fraction(capped(rounds, r).sensitivity) / Fraction(e.sigma)) ** 2 for r, e in enumerate(rounds.later)]
    if rounds.first is not None:
        squares.append(
            (Fraction(calibrated_rule(rounds.first.bounding).sensitivity) / Fraction(rounds.first.scale)) ** 2
        )
    return sum(squares, Fraction(0))


@proved("adaptive.md#novel-items")
def novel_of(rounds: Rounds, negligible: float = 0.0) -> float:
    """Return an upper bound on the probability that the rounds release an item that only one user has.

    Proof: "The first round costs the same as set union."

    Args:
        rounds: The rounds, including a first round.
        negligible: A crude bound below this probability replaces the exact recursion. The crude bound uses the size of
            the pool instead of the caps and the drop thresholds.
    """
    if rounds.first is None:
        raise InternalError("rounds over public candidates have no novel items")
    score, first = score_of(rounds), rounds.first
    crude = any_release(score, rounds.pool)
    later = crude if crude < negligible else novel_release(score, caps_of(rounds))
    return _first_novel(first) + later


@proved("set-union.md#gaussian-noise-the-joint-bound")
def _first_novel(first: Threshold) -> float:
    """Return the largest probability that the first round releases a novel item.

    Proof: "Let d = 1 - Phi((threshold - w)/sigma)^|T|, the probability that an item of T is released"
    """
    shares = calibrated_rule(first.bounding)
    threshold = first.threshold / shares.setting.unit
    return release_probability(shares.novelty, first.noise, first.scale, threshold, shares.sensitivity)


@proved("limit.md#proof")
def pair_of(proof: AdaptiveProof, negligible: float = 0.0) -> tuple[float, float]:
    """For one data set, return the probability that a novel item is released, and the mu without later releases.

    Proof: "The caps are charged, not the rounds that ran, because otherwise the charge would depend on the data."

    If the certificate contains a choice, both numbers depend only on the caps and the noise of the choice, not on the
    chosen entry (docs/privacy/limit.md).
    """
    if proof.choice is not None:
        _ensure(proof.choice.sigma > 0.0 and proof.choice.square >= 0.0 and 0.0 <= proof.choice.novel <= 1.0)
        # The squares add up to the cap on every path, because the proof adds a last Gaussian that uses the rest of the
        # cap.
        return proof.choice.novel, hypot(1.0 / proof.choice.sigma, sqrt(proof.choice.square))
    if proof.rounds is None:
        raise InternalError("a certificate has neither rounds nor a choice of rounds")
    return novel_of(proof.rounds, negligible), hypot(*mus_of(proof.rounds))


@proved("limit.md#what-integers-and-doubles-change")
def admits(choice: Choice, slack: Slack, rounds: Rounds) -> bool:
    """Return whether rounds are within the caps of a choice and the slack covers them.

    Proof: "Before an entry runs, its own numbers are compared with both."
    """
    return (
        rounds.first is not None
        and square_of(rounds) <= Fraction(choice.square)
        and novel_of(rounds, NEGLIGIBLE * choice.novel) <= choice.novel
        and covers_rounds(slack, rounds, chosen=True)
    )


def covers_rounds(slack: Slack, rounds: Rounds, *, chosen: bool) -> bool:
    """Return whether the slack covers every decision, and every draw from a pool that is larger than a limit."""
    limits = {each.bounding.limit for each in rounds.later}
    drawn = rounds.pool > min(limits)
    pool = paired_pool(rounds.pool, 0 if rounds.listed is None else rounds.listed.size)
    enough = slack.pool >= pool and slack.rounds >= len(rounds.later)
    passes = len(rounds.later) + (rounds.first is not None) + chosen
    return len(limits) == 1 and slack.passes >= passes and (enough or not drawn)


@_delta.register
@proved("adaptive.md#several-data-sets")
def _adaptive(proof: AdaptiveProof, claim: Claim) -> float:
    """Return the delta of the adaptive rounds of all data sets and of later releases.

    Proof: "All data sets have equal shares of mu^2 and d, and the numerical slack is charged n times."
    """
    _ensure(len(set(proof.data_sets)) == len(proof.data_sets))
    if proof.rounds is not None:
        _ensure(proof.rounds.listed == proof.known and proved_tails(score_of(proof.rounds), proof.rounds.known))
        kept = proof.choice is None or admits(proof.choice, proof.slack, proof.rounds)
        _ensure(kept and covers_rounds(proof.slack, proof.rounds, chosen=proof.choice is not None))
    each = slack_delta(proof.slack, claim.epsilon)
    return exact_delta(proof, claim) + max(1, len(proof.data_sets)) * each + _later_slack(proof.later, claim)


@proved("adaptive.md#both-directions")
def exact_delta(proof: AdaptiveProof, claim: Claim) -> float:
    """Return the delta of all rounds and later releases, except for the cost of finite arithmetic.

    Proof: "the release is (epsilon, d + delta_G(epsilon; mu))-private"

    If several data sets each have these rounds, the probabilities add up, and so do the squares of mu.
    """
    many = max(1, len(proof.data_sets))
    novel, mu = pair_of(proof, NEGLIGIBLE * claim.delta / many)
    known = gaussian_delta(claim.epsilon, hypot(mu * sqrt(many), sqrt(_rest(proof.later))))
    return min(1.0, (many * novel + known) * ROUNDING)


def slack_delta(slack: Slack, epsilon: float) -> float:
    """Return the cost of finite arithmetic in the rounds of one data set."""
    draws = draw_slack(slack.pool, slack.rounds) if slack.pool else 0.0
    return walk_slack(epsilon, slack.passes) + draws


@proved("adaptive.md#what-follows")
def _rest(later: Later | None) -> float:
    """Return the cap on the mu^2 of later releases. The parts of these releases add up to at most this cap.

    Proof: "Let the squares of their mu add up to at most M on every sequence of outcomes."
    """
    if later is None:
        return 0.0
    cover = Fraction(0) if later.cover is None else Fraction(later.cover.columns) / Fraction(later.cover.sigma) ** 2
    _ensure(Fraction(later.joining) + Fraction(later.counting) + cover <= Fraction(later.square))
    return later.square


def _later_slack(later: Later | None, claim: Claim) -> float:
    return 0.0 if later is None or later.passes == 0 else walk_slack(claim.epsilon, later.passes)


@_delta.register
@proved("set-union.md#gaussian-noise-the-joint-bound")
def _threshold(proof: ThresholdProof, claim: Claim) -> float:
    """Return the delta of a release with one threshold and of later releases about the released items.

    Proof: "The plan takes the largest delta over all (|T|, w) that the weighting allows."
    """
    first, shares = proof.first, calibrated_rule(proof.first.bounding)
    _ensure(first.scale > 0.0 and first.bounding.norm == (1 if first.noise == "laplace" else 2))
    _ensure(proof.later is None or first.noise == "gaussian")
    threshold = first.threshold / shares.setting.unit
    # Compute mu from mu^2. The factor exceeds the rounding error of the root.
    rest = _rest(proof.later) ** 0.5 * (1.0 + 2.0**-50)
    only = threshold_delta(shares.novelty, first.noise, claim.epsilon, first.scale, threshold, shares.sensitivity, rest)
    return only + _later_slack(proof.later, claim)


@_delta.register
def _selection(proof: SelectionProof, claim: Claim) -> float:
    _ensure(0.0 < proof.delta < claim.delta and proof.few >= 0)
    return proof.delta + numerical_slack(claim.epsilon)


def root_above(number: int) -> float:
    """Return the square root of an integer, either exactly or rounded up."""
    root = sqrt(number)
    # Only the roots of squares are exact. Any other root is below the next larger double.
    exact = float(isqrt(number)) == root and isqrt(number) ** 2 == number
    return root if exact else nextafter(root, float("inf"))


@proved("counts.md#the-choice-of-the-limit")
def counts_square(proof: CountsProof) -> Any:
    """Return the mu^2 of the counts with eighty digits, for the most expensive limit, regardless of the choice.

    Proof: "the counts are a Gaussian mechanism with the same"
    """
    _ensure(len(proof.menu) >= 1 and all(each.sigma > 0.0 for each in proof.menu) and proof.classes_sigma >= 0.0)
    _ensure(len(proof.menu) == 1 or proof.classes_sigma > 0.0)
    # A user adds at most 1 to each of `limit` grams per length, or sqrt(limit / n) to each of n grams
    # (docs/privacy/counts.md).
    mu = max(precise.number(root_above(max(1, sum(each.limits)))) / precise.number(each.sigma) for each in proof.menu)
    return mu * mu + (1 / precise.number(proof.classes_sigma) ** 2 if proof.classes_sigma else 0)


@_delta.register
def _counts(proof: CountsProof, claim: Claim) -> float:
    mu = counts_square(proof) ** precise.number(0.5)
    return float(precise.gaussian_delta(claim.epsilon, mu) + _counts_slack(proof, claim.epsilon))


def _counts_slack(proof: CountsProof, epsilon: float) -> float:
    """Return the cost of finite arithmetic. The choice of a limit counts as one more pass."""
    lengths = max(1, *(len(each.limits) for each in proof.menu))
    return walk_slack(epsilon, lengths + bool(proof.classes_sigma))


@_delta.register
def _picks(proof: PicksProof, claim: Claim) -> float:
    _ensure(proof.rate > 0.0 and 0 <= proof.picks <= proof.candidates)
    return spent(claim, max(1, proof.picks), max(1, proof.candidates), proof.rate)


@_delta.register
@proved("sequences.md#proof-for-contexts")
def _paths(proof: PathsProof, claim: Claim) -> float:
    """Return the delta of counts along the paths of a tree.

    Proof: "On a path of nodes, shares add up to at most 1 - s1 - s2"
    """
    _ensure(proof.epsilon > 0 and proof.max_length >= 1 and proof.max_gram >= 1)
    # The alphabet is public, or it is the result of a release whose cost is in the certificate.
    _ensure(proof.alphabet is not None or proof.finding is not None)
    # Only released lengths justify counting fewer steps, and only trees of contexts release lengths.
    _ensure((proof.least is None) is (proof.per_noise is None))
    _ensure(proof.least is None or (proof.tree == "contexts" and 0 < proof.least <= 1))
    _ensure(proof.usual is None or (proof.least is not None and 1 <= proof.usual <= proof.max_length))
    found = Fraction(0) if proof.finding is None else Fraction(proof.finding.claim.epsilon)
    # In basic composition, the epsilons add up exactly.
    _ensure(proof.epsilon + found <= Fraction(claim.epsilon))
    if proof.finding is None:
        return 0.0
    spends = check(proof.finding)
    _ensure(spends <= proof.finding.claim.delta <= claim.delta)
    return spends


@_delta.register
def _votes(proof: VotesProof, claim: Claim) -> float:
    ballot = Ballot(proof.rate, proof.theta, proof.again, proof.further)
    return trie_delta(claim.epsilon, ballot, proof.rounds, proof.words)


def night_setting(proof: NightsProof, night: int) -> RuleSetting:
    """Return the setting of the weighting of a night (nights are numbered from 1)."""
    return RuleSetting(proof.pool, 2, proof.bits, proof.cutoffs[night - 1], bound=MOST_BOUND)


@proved("series.md#the-mechanism")
def night_charge(proof: NightsProof, night: int) -> Charge:
    """Return the charge of a night with its noise. Each user spends the night's part of their remaining budget.

    Proof: "noise sigma_t with (S / sigma_t)^2 <= M p_t"

    Raises:
        InternalError: The night has less noise than its charge requires.
    """
    cost, sigma = proof.costs[night - 1], proof.sigmas[night - 1]
    sensitivity = PolicyGaussian().sensitivity(night_setting(proof, night))
    square = Fraction(proof.square) / WHOLE * cost
    if (Fraction(sensitivity) / Fraction(sigma)) ** 2 > square:
        raise InternalError("a night would run with less noise than was charged for")
    # The part is rounded down, and the remaining budget is spent on later nights.
    rate = cost * BOUND_STEPS // sum(proof.costs[night - 1 :])
    return Charge(cost, square, sensitivity, sigma, (rate,))


@proved("series.md#novel-pairs")
def _night_hit(proof: NightsProof) -> float:
    """Return an upper bound on the probability that a novel item is released on any night, with or without the user.

    Proof: "Q'(H) <= d = Phi(Phi^-1(W p0) + M^(1/2)) by Neyman and Pearson"
    """
    lists = (proof.costs, proof.sigmas, proof.cutoffs, proof.factors, proof.thresholds)
    _ensure(proof.square > 0.0 and proof.pool >= 1 and proof.cell >= 1 and len(set(map(len, lists))) == 1)
    _ensure(min(proof.costs) >= 1 and min(proof.factors) >= 1 and min(proof.sigmas) > 0.0)
    exact = exact_scores(proof, proof.thresholds)
    _ensure(bool(exact.min() > 0))
    spreads = spreads_of(proof.factors, proof.sigmas, proof.cell, proof.bits)
    novel = min(1.0, proof.pool * ever_reached(spreads, exact))
    _ensure(proved_levels(proof))
    for night in range(1, len(proof.costs) + 1):
        night_charge(proof, night)  # raises an error if the noise is less than the charge requires
    return float(ndtr(ndtri(novel) + sqrt(proof.square) * ROUNDING))


@_delta.register
def _nights(proof: NightsProof, claim: Claim) -> float:
    noise = gaussian_delta(claim.epsilon, sqrt(proof.square))
    return (_night_hit(proof) + noise) * ROUNDING + walk_slack(claim.epsilon, len(proof.costs))


@_delta.register
def _keys(proof: KeysProof, claim: Claim) -> float:
    return keys_delta(proof, claim, _delta)
