"""Plans of profiles: the numbers that will run and the guarantee; no data."""

from dataclasses import dataclass
from math import fsum, inf, nextafter, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

from voxpop.mechanisms.profile.constants import COVER, SHARE_OF_COUNTS, SINGLES, SPURIOUS
from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds, Terms
from voxpop.mechanisms.rounds.menu import (
    Menu,
    adaptive_proof,
    planned_menu,
    planned_slack,
    rows_of,
    users_needed_by,
)
from voxpop.mechanisms.rounds.users_needed import users_needed_rows
from voxpop.privacy.budget import Budget, budget_numbers, check_slack
from voxpop.privacy.certificate import slack_delta
from voxpop.privacy.numerics import walk_slack
from voxpop.privacy.passes import Cover, Later, Proof
from voxpop.privacy.planned import Configured, DiscoveryPlan, certified

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus
    from voxpop.mechanisms.profile.releasing import Stages
    from voxpop.reading.typed_keys import TypedKeys
    from voxpop.release.profile import Profile

LATER = 3
"""Passes after all rounds: the histogram of counts, counts and cover."""


class ProfileConfiguration(Configured, Protocol):
    """The fields of `ProfileMechanism` that plans read."""

    @property
    def keys(self) -> "TypedKeys":
        """The columns and their combinations."""

    @property
    def counts(self) -> bool:
        """Whether counts and cover are released."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class ProfilePlan(DiscoveryPlan[ProfileConfiguration, "Corpus", "Profile"]):
    """What `ProfileMechanism.plan` returns: every number that will run, before any data is read.

    Attributes:
        passes: the choice of the limit; in the plan of a release also the adaptive rounds that found the keys.
        joining: mu^2 of the rounds over joint values; 0 without these.
        counting: mu^2 of the counts; 0 without counts.
        cover_sigma: standard deviation of the noise on the users' shares of covered and of other rows; 0 without.
        slack: the part of delta that finite arithmetic costs.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.ProfileMechanism({"city": "string", "year": "int64"}).plan(vp.Budget(2, 1e-7))
        >>> plan.delta <= 1e-7, plan.users_needed(0.9, per_user=10) < 150
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
    def later(self) -> float:
        """The mu^2 of everything after the rounds, from the numbers that run, rounded up."""
        return later_square(self.joining, self.counting, self.cover_sigma, len(self.mechanism.keys.columns))

    def _proof(self) -> Proof:
        columns = max(1, len(self.mechanism.keys.columns))
        cover = Cover(columns, self.cover_sigma) if self.cover_sigma else None
        passes = planned_slack(None).passes + LATER
        later = Later(self.later, "parts", passes, self.joining, self.counting, cover)
        return adaptive_proof(self.passes[0], None, later)

    def _users_needed(self, probability: float, length: int, per_user: int) -> int | None:
        return users_needed_by(self.passes[-1], self.budget, probability, per_user)

    def _prepared(self, data: "Corpus") -> "Stages":
        from voxpop.mechanisms.profile.releasing import stages

        return stages(self, data)

    def _run(self, data: "Stages", seed: int | None) -> "Profile":
        from voxpop.mechanisms.profile.releasing import release_profile

        return release_profile(self, data, seed)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        last = self.passes[-1]
        return {
            **self.mechanism.to_dict(),
            **budget_numbers(self.budget, self.delta),
            "max_items_per_user": last.limit if isinstance(last, AdaptiveRounds) else None,
            "mu_squared_of_joint_values": self.joining,
            "spurious": SPURIOUS if self.joining else 0.0,
            "mu_squared_of_counts": self.counting,
            "sigma_of_cover": self.cover_sigma,
            "passes": rows_of(*self.passes),
            "users_needed": users_needed_rows(self.users_needed),
        }


def later_square(joining: float, counting: float, cover_sigma: float, columns: int) -> float:
    """Return the mu^2 of joint values, counts and cover, rounded up.

    Each user changes the two sums of each column by at most 1 in l2, so all sums by at most the root of the number of
    columns (docs/privacy/profile.md, "Cover").
    """
    cover = max(1, columns) / cover_sigma**2 if cover_sigma else 0.0
    return nextafter(fsum([joining, counting, cover]) * (1 + 2.0**-40), inf)


def plan_profile(profiling: ProfileConfiguration, budget: Budget) -> ProfilePlan:
    """Compute the numbers of a profile; see `ProfileMechanism.plan`."""
    # Rounds over single and over joint values.
    slack = 2 * slack_delta(planned_slack(None), budget.epsilon) + walk_slack(budget.epsilon, LATER)
    check_slack("a profile needs", budget, slack)
    exact = Budget(budget.epsilon, nextafter(budget.delta - slack, 0.0))
    columns, measured = max(1, len(profiling.keys.columns)), SHARE_OF_COUNTS + COVER if profiling.counts else 0.0
    share = (1.0 - measured) * (SINGLES if profiling.keys.joint else 1.0)
    menu = planned_menu(Terms(exact.epsilon, exact.delta, share))
    joining = counting = cover_sigma = 0.0
    if share < 1.0:
        # The rest after the rounds and their histogram, rounded down.
        rest = (menu.square * (1 / share - 1) - menu.sigma**-2) * (1 - 2.0**-30)
        # Of 1 - share, with the histogram paid from all parts evenly.
        joining = rest * (1.0 - share - measured) / (1.0 - share)
        counting = rest * SHARE_OF_COUNTS / (1.0 - share) if profiling.counts else 0.0
        cover_sigma = sqrt(columns / (rest * COVER / (1.0 - share))) * (1 + 2.0**-40) if profiling.counts else 0.0
    return certified(ProfilePlan(profiling, budget, (menu,), joining, counting, cover_sigma, slack))
