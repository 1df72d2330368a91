"""The plans of profiles and of keys with counts. These plans contain all numbers and the guarantee, but no data."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from math import exp, nextafter, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

import numpy as np
from scipy.stats import binom

from voxpop.errors import BudgetError
from voxpop.mechanisms.profile import constants as tuned
from voxpop.mechanisms.profile.releasing import keyed_engine, release_keys, release_profile, stages
from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds, Terms
from voxpop.mechanisms.rounds.listed import known_users_needed, listed_numbers
from voxpop.mechanisms.rounds.menu import (
    Menu,
    adaptive_proof,
    later_square,
    planned_menu,
    planned_rounds,
    planned_slack,
    rows_of,
    users_needed_by,
)
from voxpop.mechanisms.rounds.plan import LISTED_NOVELTY, NOVELTY
from voxpop.mechanisms.rounds.users_needed import users_needed_rows
from voxpop.privacy.budget import Budget, budget_numbers, check_slack
from voxpop.privacy.certificate import slack_delta
from voxpop.privacy.composition import compose
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.privacy.numerics import least_whole, walk_slack, with_rounding
from voxpop.privacy.parameters import KeyNoise, KeyParts
from voxpop.privacy.parts import parts_bound, parts_spread, planned_parts, released_in_parts
from voxpop.privacy.passes import AdaptiveProof, Cover, KeysProof, Later, Proof
from voxpop.privacy.planned import Configured, DiscoveryPlan, certified, with_record
from voxpop.privacy.truncated import MOST_REACH, least_noise, noise_bound, noise_spread, released_with

if TYPE_CHECKING:
    from voxpop.engine.contract import Engine
    from voxpop.engine.data import Corpus
    from voxpop.kernels.arrays import Int64s
    from voxpop.mechanisms.profile.releasing import Stages
    from voxpop.reading.typed_keys import TypedKeys
    from voxpop.release.known import KnownColumns
    from voxpop.release.profile import Profile

LATER = 3
"""The number of passes after all rounds. These are the histogram of counts, the counts, and the cover."""


class ProfileConfiguration(Configured, Protocol):
    """The fields of `ProfileMechanism` that plans read."""

    @property
    def keys(self) -> "TypedKeys":
        """The columns and their combinations."""

    @property
    def counts(self) -> bool:
        """Whether counts and cover are released."""

    @property
    def known_columns(self) -> "KnownColumns | None":
        """The public lists, if there are any."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class ProfilePlan(DiscoveryPlan[ProfileConfiguration, "Corpus", "Profile"]):
    """The result of `ProfileMechanism.plan`, with every number of the run, computed before any data is read.

    Attributes:
        passes: The choice of the limit. In the plan of a release, the adaptive rounds that found the keys follow the
            choice.
        joining: The mu^2 of the rounds over joint values, or 0 without joint values.
        counting: The mu^2 of the counts, or 0 without counts.
        cover_sigma: The standard deviation of the noise on the shares of covered and other rows, or 0 without cover.
        slack: The part of delta that is reserved for finite arithmetic.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.ProfileMechanism({"city": "string", "year": "int64"}).plan(vp.Budget(2, 1e-7))
        >>> plan.delta_spent <= 1e-7, plan.users_needed(0.9, per_user=10) < 150
        (True, True)
    """

    _recorded: ClassVar = frozenset({"passes"})
    counts_items: ClassVar = True

    passes: tuple[Menu | AdaptiveRounds, ...]
    joining: float
    counting: float
    cover_sigma: float
    slack: float

    @property
    def cover_error(self) -> float | None:
        """The standard error of each sum of cover, in users, or None without cover."""
        return with_rounding(self.cover_sigma, tuned.CELL / tuned.COVER_UNIT) if self.counting else None

    @property
    def later(self) -> float:
        """The mu^2 of all passes after the rounds, computed from the numbers that are used and rounded up."""
        return later_square(self.joining, self.counting, self.cover_sigma, len(self.mechanism.keys.columns))

    def _proof(self) -> Proof:
        columns, known = max(1, len(self.mechanism.keys.columns)), self.mechanism.known_columns
        cover = Cover(columns, self.cover_sigma) if self.cover_sigma else None
        passes = planned_slack(None).passes + LATER
        later = Later(self.later, "parts", passes, self.joining, self.counting, cover)
        return adaptive_proof(self.passes[0], None, later, listed=known and known.listed)

    def _users_needed(self, probability: float, length: int, per_user: int) -> int | None:
        return users_needed_by(self.passes[-1], self.budget, probability, per_user)

    def known_users_needed(self, probability: float, *, per_user: int | None = None) -> int | None:
        """Return the number of users that a listed value needs, as the plan of `Items` does for listed items."""
        return known_users_needed(self.passes[-1], self.mechanism.known_columns, None, probability, per_user)

    def _prepared(self, data: "Corpus") -> "Stages":
        return stages(self, data)

    def _run(self, data: "Stages", seed: int | None) -> "Profile":
        return release_profile(self, data, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        last, columns = self.passes[-1], max(1, len(self.mechanism.keys.columns))
        return {
            **self.mechanism.to_dict(),
            **budget_numbers(self.budget, self.delta_spent),
            "max_items_per_user": last.limit if isinstance(last, AdaptiveRounds) else None,
            "passes": [*rows_of(*self.passes), *_rows_after(self, columns, self.joining)],
            "users_needed": users_needed_rows(self.users_needed),
            **listed_numbers(last, self.mechanism.known_columns, None, self.transcript),
        }


def plan_profile(profiling: ProfileConfiguration, budget: Budget) -> ProfilePlan:
    """Compute the numbers of a profile; see `ProfileMechanism.plan`."""
    # The slack covers the rounds over single values and the rounds over joint values.
    listed = profiling.known_columns and profiling.known_columns.listed
    slack = slack_delta(planned_slack(None, listed), budget.epsilon) + slack_delta(planned_slack(None), budget.epsilon)
    slack += walk_slack(budget.epsilon, LATER)
    check_slack("a profile needs", budget, slack)
    exact = Budget(budget.epsilon, nextafter(budget.delta - slack, 0.0))
    columns = max(1, len(profiling.keys.columns))
    measured = tuned.SHARE_OF_COUNTS + tuned.COVER if profiling.counts else 0.0
    share = (1.0 - measured) * (tuned.SINGLES if profiling.keys.joint else 1.0)
    novelty = NOVELTY if listed is None else LISTED_NOVELTY
    menu = planned_menu(Terms(exact.epsilon, exact.delta, share, novelty, listed=listed))
    joining = counting = cover_sigma = 0.0
    if share < 1.0:
        # Compute the mu^2 that remains after the rounds and their histogram, rounded down.
        rest = (menu.square * (1 / share - 1) - menu.sigma**-2) * (1 - 2.0**-30)
        # The later passes divide the remaining 1 - share, and each of them pays for the histogram in proportion to its
        # share.
        joining = rest * (1.0 - share - measured) / (1.0 - share)
        counting = rest * tuned.SHARE_OF_COUNTS / (1.0 - share) if profiling.counts else 0.0
        cover_sigma = sqrt(columns / (rest * tuned.COVER / (1.0 - share))) * (1 + 2.0**-40) if profiling.counts else 0.0
    return certified(ProfilePlan(profiling, budget, (menu,), joining, counting, cover_sigma, slack))


class KeysConfiguration(Configured, Protocol):
    """The fields of `KeyCounts` that plans read."""

    @property
    def keys(self) -> "TypedKeys":
        """The combinations of columns."""

    @property
    def max_keys_per_user(self) -> int | None:
        """A public bound on the number of keys per user."""

    @property
    def other_rows(self) -> bool:
        """Whether the rows of keys that are not released are also measured."""

    @property
    def repeated(self) -> bool:
        """Whether the release is one of many."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class KeysPlan(DiscoveryPlan[KeysConfiguration, "Corpus", "Profile"]):
    """The result of `KeyCounts.plan`, with every number of the run, computed before any data is read.

    Attributes:
        menu: The entries with one noisy number per key.
        parts: The entry that counts users in separate parts by their number of keys, or None without a private choice.
        passes: The entry for adaptive rounds. In the plan of a release by rounds, the rounds of the chosen limit follow
            this entry.
        counting: The mu^2 of the counts after rounds.
        choosing: The rate of the noise on the number of users in each class, or 0 without a private choice.
        rest: The rate of the noise on the sums of users' shares of rows, or 0 without these sums.
        cover_sigma: The standard deviation of the noise on these sums in repeated releases, or 0 without them.
        later: The mu^2 of all passes after the rounds, which is at least the mu^2 of counts and sums. This mu^2 depends
            neither on the sets nor on the sums, so one reserve in a ledger pays for all releases with the same budget.
        chosen: The index of the entry that was used, in the order menu, parts, rounds (None before a private choice).
        limit_of_more: The maximum number of keys that were counted per user with three or more keys, or None if no such
            users were counted.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.KeyCounts({"plan": "string"}, [("plan",)], max_keys_per_user=1).plan(vp.Budget(2, 1e-7))
        >>> plan.users_needed(0.5, per_user=1)
        9
    """

    _recorded: ClassVar = frozenset({"passes", "chosen", "limit_of_more"})
    counts_items: ClassVar = True

    menu: tuple[KeyNoise, ...]
    parts: KeyParts | None
    passes: tuple[Menu | AdaptiveRounds, ...]
    counting: float
    choosing: Fraction
    rest: Fraction
    cover_sigma: float = 0.0
    later: float = 0.0
    chosen: int | None = None
    limit_of_more: int | None = None

    @property
    def place_of_parts(self) -> int | None:
        """The index of the entry that counts users in parts, or None without this entry."""
        return None if self.parts is None else len(self.menu)

    @property
    def place_of_rounds(self) -> int:
        """The index of the entry for rounds, which is the last entry."""
        return len(self.menu) + (self.parts is not None)

    @property
    def noise(self) -> KeyNoise | None:
        """The noise of the entry that was used (None before a private choice, for parts and for rounds)."""
        if self.chosen is None:
            return None if self.passes else self.menu[-1]
        return self.menu[self.chosen] if self.chosen < len(self.menu) else None

    @property
    def error(self) -> float | None:
        """The standard deviation of the noise on each count (None before a private choice and for rounds)."""
        if self.parts is not None and self.limit_of_more is not None:
            return parts_spread(self.parts, self.limit_of_more)
        return None if self.noise is None else noise_spread(self.noise)

    @property
    def least_count(self) -> int:
        """The smallest count that a released key can have."""
        return 1 if self.noise is None else self.noise.reach

    @property
    def error_bound(self) -> int | None:
        """A bound on the noise of a count, which is correct with probability 0.95, or None without an `error`."""
        if self.parts is not None and self.limit_of_more is not None:
            return parts_bound(self.parts, self.limit_of_more, _BOUND_PROBABILITY)
        return None if self.noise is None else noise_bound(self.noise, _BOUND_PROBABILITY)

    @property
    def cover_error(self) -> float | None:
        """The standard error of each sum of shares, in users, or None without these sums."""
        if not self.mechanism.other_rows:
            return None
        scale = float(len(self.mechanism.keys.sets) / self.rest) if self.rest else 0.0
        return with_rounding(self.cover_sigma or sqrt(2.0) * scale, tuned.CELL / tuned.COVER_UNIT)

    def _proof(self) -> KeysProof | AdaptiveProof:
        rounds = None
        if self.passes:
            # The `LATER` passes are the histogram of counts, the counts, and the sums of shares.
            sets, sigma = len(self.mechanism.keys.sets), self.cover_sigma
            cover = Cover(sets, sigma) if sigma else None
            later = Later(self.later, "parts", LATER, 0.0, self.counting, cover)
            rounds = adaptive_proof(self.passes[0], self.mechanism.max_keys_per_user, later)
            if self.mechanism.repeated:
                return rounds
        edges = tuned.KEY_EDGES if self.choosing else ()
        return KeysProof(edges, self.choosing, self.rest, len(self.mechanism.keys.sets), self.menu, rounds, self.parts)

    def _users_needed(self, probability: float, length: int, per_user: int) -> int | None:
        """Return the number of users needed with the entry that was used, or with the entry for this number of keys."""
        ran = self.chosen if self.choosing else None
        if self.parts is not None and ran == self.place_of_parts:
            found = partial(released_in_parts, self.parts, held=per_user)
            return least_whole(lambda users: found(users) >= probability, 0, 1, _MOST_KEY_USERS)
        few = [noise for noise in self.menu if noise.limit >= per_user]
        noise = few[0] if few and ran is None else self.noise
        if noise is None:
            return users_needed_by(self.passes[-1], self.budget, probability, per_user)
        chances = np.array([released_with(noise, users) for users in range(2 * noise.reach + 2)])
        kept = min(1.0, noise.limit / per_user)

        def reached(users: int) -> bool:
            # With reach j, a key with 2 j + 1 or more users is always released.
            some = binom.pmf(np.arange(chances.size), users, kept)
            return float(some @ chances + binom.sf(chances.size - 1, users, kept)) >= probability

        return least_whole(reached, 0, noise.reach, _MOST_KEY_USERS)

    def _prepared(self, data: "Corpus") -> "Engine":
        return keyed_engine(self, data)

    def _run(self, data: "Engine", seed: int | None) -> "Profile":
        return release_keys(self, data, seed)

    def entry_for(self, counts: "Int64s") -> int:
        """Return the index of the entry that the noisy numbers of users by class select.

        Among the entries that omit at most a hundredth of all (user, key) pairs, this is the entry with the smallest
        limit. If there is no such entry, the function returns the entry for parts if enough pairs belong to users with
        one or two keys, and the entry for rounds otherwise.
        """
        users = assumed_users([int(count) for count in counts], 1.0 / float(self.choosing))
        pairs = sum(count * held for count, held in zip(users, tuned.KEYS_HELD, strict=True))
        for place, noise in enumerate(self.menu):
            lost = sum(n * max(0, held - noise.limit) for n, held in zip(users, tuned.KEYS_HELD, strict=True))
            if lost <= tuned.SHARE_LOST * pairs:
                return place
        few = users[0] >= tuned.SHARE_OF_ONE * pairs and users[0] + users[1] >= tuned.SHARE_OF_FEW * pairs
        return self.place_of_parts if few and self.place_of_parts is not None else self.place_of_rounds

    def ran(self, chosen: int | None, round_limit: int | None = None, limit_of_more: int | None = None) -> "KeysPlan":
        """Return the plan with the used entry, and its limit for rounds or for users with three or more keys."""
        first = self.passes[0] if self.passes else None
        passes = (first, first.entry(round_limit)) if isinstance(first, Menu) and round_limit else self.passes
        return with_record(self, passes=passes, chosen=chosen, limit_of_more=limit_of_more)

    def _totals(self) -> list[dict[str, float]]:
        """Return the total epsilon of several equal releases if deltas add up, or an empty list for a changed plan."""
        if not self._certificate:
            return []
        return [{"releases": each, "epsilon": compose([self.guarantee] * each).epsilon} for each in _REPEATS]

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        last = self.passes[-1] if self.passes else None
        return {
            **self.mechanism.to_dict(),
            **budget_numbers(self.budget, self.delta_spent),
            **{name: getattr(self, name) for name in ("chosen", "error", "error_bound")},
            "round_limit": last.limit if isinstance(last, AdaptiveRounds) else None,
            "together": self._totals(),
            "passes": self._rows(),
            "users_needed": users_needed_rows(self.users_needed),
        }

    def _rows(self) -> list[dict[str, Any]]:
        """Return one row for each type of pass, each round and each entry. Only the passes of the chosen entry run."""
        choosing = {"edges": list(tuned.KEY_EDGES), "rate": float(self.choosing)}
        rows: list[dict[str, Any]] = [{"pass": "classes", **choosing}] if self.choosing else []
        for each in self.menu:
            numbers = {"limit": each.limit, "rate": float(each.rate), "reach": each.reach, "error": noise_spread(each)}
            rows.append({"pass": "numbers", **numbers})
        if self.parts is not None:
            limit, rate = self.limit_of_more, float(self.parts.rate)
            rows.append({"pass": "few", "rate": rate, "threshold": self.parts.threshold})
            rows.append({"pass": "sizes", "rate": float(self.parts.sizing)})
            rows.append({"pass": "more", "limit": limit, "rate": limit and float(self.parts.rate_of_more(limit))})
        rows += rows_of(*self.passes) if self.passes else []
        rows += _rows_after(self, len(self.mechanism.keys.sets))
        rest = {"rate": float(self.rest), "error": self.cover_error}
        return [*rows, {"pass": "rest", **rest}] if self.rest else rows


def _rows_after(plan: ProfilePlan | KeysPlan, columns: int, joining: float = 0.0) -> list[dict[str, Any]]:
    """Return the rows of the passes after the rounds.

    Args:
        plan: The plan.
        columns: The number of columns or sets with cover.
        joining: The mu^2 of joint values.
    """
    joint = {"pass": "joining", "mu_squared": joining, "spurious": tuned.SPURIOUS}
    counts = {"pass": "counts", "mu_squared": plan.counting}
    cover = {"pass": "cover", "columns": columns, "sigma": plan.cover_sigma, "error": plan.cover_error}
    return [row for runs, row in ((joining, joint), (plan.counting, counts), (plan.cover_sigma, cover)) if runs]


def assumed_users(counts: Sequence[int], scale: float) -> list[float]:
    """Return the assumed numbers of users with 1, 2, 3, and 4 or more keys, based on the noisy numbers.

    The noisy number of a class after the first is used if it is unlikely to be only noise. Otherwise the function
    assumes that the numbers of users continue to decrease as before, unless the noisy number contradicts this
    assumption.

    Args:
        counts: The noisy number of users in each class.
        scale: The scale of the noise, in users.
    """
    first, second, third, more = counts
    one, sure = max(1, first), [each * scale for each in tuned.KEY_SURE]
    two = float(second) if second >= sure[1] else 0.0
    three = float(third) if third >= sure[2] else 0.0
    four = float(more) if more >= sure[3] else 0.0
    if two and not three:
        three = _continued(two**2 / one, third, scale)
    if three and not four and two:
        ratio = min(0.9, three / two)
        four = _continued(three * ratio / (1 - ratio), more, scale)
    return [float(one), two, three, four]


def _continued(expected: float, count: int, scale: float) -> float:
    """Return the noisy number of a class, or 0 if it is too low compared with the expected number."""
    contradicted = expected - count >= tuned.CONTRADICTED * scale or count <= scale / 2
    return 0.0 if contradicted else float(count)


_MOST_KEY_USERS = 10**12
_REPEATS = (12, 52)
"""The numbers of equal releases for which a plan contains the total: one release per month or per week of a year."""
_BOUND_PROBABILITY = 0.95
"""The probability that a number is between `low` and `high`."""


def plan_keys(keyed: KeysConfiguration, budget: Budget) -> KeysPlan:
    """Compute the numbers of keys with counts; see `KeyCounts.plan`."""
    private, repeated = keyed.max_keys_per_user is None and not keyed.repeated, keyed.repeated
    limits = tuned.KEY_LIMITS if keyed.max_keys_per_user is None else (keyed.max_keys_per_user,)
    with_rounds = private or repeated or limits[-1] > tuned.KEY_LIMITS[-1]
    whole = Fraction(budget.epsilon)
    choosing, rest = (_part_of_epsilon(whole, tuned.SHARE_OF_ENTRY) if private else Fraction(0)), Fraction(0)
    if keyed.other_rows and not repeated:
        rest = _part_of_epsilon(whole, tuned.SHARE_OF_REST)
    # The slack covers the passes of both kinds of entries, at the largest epsilon at which a certificate is evaluated.
    top = float(whole + choosing + rest) * (1 + 2.0**-20)
    slack = walk_slack(top, 2 * LATER + MOST_REACH // 16)
    if with_rounds:
        slack += slack_delta(planned_slack(keyed.max_keys_per_user), top)
    check_slack("keys with counts need", budget, slack)
    delta = nextafter(budget.delta - slack, 0.0)
    menu = tuple(
        _key_noise(limit, (whole - choosing - rest) / limit, delta)
        for limit in limits
        if limit <= tuned.KEY_LIMITS[-1] and not repeated
    )
    parts = None
    if private:
        left = whole - choosing - rest
        parts = planned_parts(left, _part_of_epsilon(left, tuned.SHARE_OF_SIZES), delta * (1 - 2.0**-40))
    passes: tuple[Menu | AdaptiveRounds, ...] = ()
    counting = cover_sigma = later = 0.0
    if with_rounds:
        losses = [float(each) for each in (choosing, rest) if each]
        epsilon = _epsilon_of_rounds(budget.epsilon, delta, losses)
        terms = Terms(epsilon, delta * (1 - 1e-9), tuned.SHARE_OF_ROUNDS)
        entry = planned_rounds(terms, keyed.max_keys_per_user)
        passes = (entry,)
        counting = (1 - tuned.SHARE_OF_ROUNDS) / terms.sigma**2 * (1 - 2.0**-28)
        if isinstance(entry, Menu):
            # The share of the counts pays for the histogram of the limit.
            counting -= entry.sigma**-2 * (1 + 2.0**-30)
        later = later_square(0.0, counting, 0.0, 1)
        if keyed.other_rows and repeated:
            cover_sigma = sqrt(len(keyed.keys.sets) / (counting * 2 * tuned.COVER)) * (1 + 2.0**-40)
            counting *= 1 - 2 * tuned.COVER
    chosen = None if private else 0
    return certified(KeysPlan(keyed, budget, menu, parts, passes, counting, choosing, rest, cover_sigma, later, chosen))


def _part_of_epsilon(whole: Fraction, share: float) -> Fraction:
    """Return a share of epsilon with a small denominator, so that the parts add up exactly."""
    return Fraction(round(whole * Fraction(share) * 2**40), 2**40)


def _key_noise(limit: int, rate: Fraction, delta: float) -> KeyNoise:
    """Return the noise of an entry with at most `limit` keys per user."""
    noise = least_noise(limit, rate, delta / limit)
    if noise.reach > MOST_REACH:
        raise BudgetError(
            "epsilon is too small for keys with counts, because a key would need more than "
            f"{MOST_REACH:,} users. Choose a larger epsilon."
        )
    return noise


def _epsilon_of_rounds(epsilon: float, delta: float, losses: list[float]) -> float:
    """Return the epsilon for which rounds are planned, so that rounds and pure releases together cost at most delta."""
    if not losses:
        return epsilon
    low, high = epsilon - sum(losses), epsilon
    for _ in range(40):
        middle = (low + high) / 2
        terms = Terms(middle, delta)
        mu, mean = 1.0 / terms.sigma, 0.0
        for signs in product((1.0, -1.0), repeat=len(losses)):
            chance, left = 1.0, epsilon
            for loss, sign in zip(losses, signs, strict=True):
                chance, left = chance / (1.0 + exp(-sign * loss)), left - sign * loss
            mean += chance * gaussian_delta(left, mu)
        low, high = (middle, high) if mean <= terms.target * (1 - terms.novelty) * (1 - 1e-6) else (low, middle)
    return low
