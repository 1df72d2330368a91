"""Two neighbouring collections, an event, and what a release shows of the user in whom they differ.

**Many trials in one release.** One release of one tiny collection is one trial, and costs a millisecond. So a case
holds many copies of its two collections side by side, whose users and items are disjoint, all with their canary or all
without. Each copy is a trial, and the trials are independent: a user's sample, its order among the users of its copy
and the noise of an item are separate draws; weights of an item depend on the users who hold it, or hold what they hold,
and those are of one copy. So the release restricted to a copy has the law of the release of that copy alone. For this
every mechanism states its own reasons in `*_cases.py`; where a public number that depends on all copies enters (a
threshold by the number of candidates), the event asks for one value of it, and the case is built so that it has this
value but with a probability below 1e-4 for all trials together, which is added to the chance of error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, exp
from time import perf_counter
from typing import TYPE_CHECKING, Any

from voxpop.testing.audit.lower_bounds import ERROR, Counts, delta_shown, epsilon_shown, ratio, strays

if TYPE_CHECKING:
    from voxpop.privacy.budget import Budget


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A worst case of one mechanism.

    Attributes:
        mechanism: what is audited, in words.
        name: what the canary does.
        budget: the claim.
        copies: trials in one release.
        joined: runs one release of the copies with their canaries, and counts the copies in which the event happened.
        without: the same without the canaries.
        exact: probabilities of the event with and without the canary, from the plan's public numbers.
        share: of the trials asked for that are run, where they are slow.
    """

    mechanism: str
    name: str
    budget: "Budget"
    copies: int
    joined: Callable[[], tuple[int, Any]]
    without: Callable[[], tuple[int, Any]]
    exact: tuple[float, float]
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What an audit of one case found.

    Attributes:
        mechanism: what was audited.
        name: of the case.
        epsilon: of the claim.
        delta: of the claim.
        counts: of the event.
        exact: its probabilities by the plan.
        error: chance that the two bounds below are wrong.
        epsilon_shown: lower bound of epsilon at the claim's delta.
        delta_shown: lower bound of delta at the claim's epsilon.
        epsilon_exact: epsilon at the claim's delta by the exact probabilities: the most that this case can show.
        delta_exact: the same of delta at the claim's epsilon.
        strays: how likely counts this far from the exact probabilities are; the smaller of both sides.
        repeated: whether two releases with fresh secrets were the same in every copy.
        seconds: it took.
    """

    mechanism: str
    name: str
    epsilon: float
    delta: float
    counts: Counts
    exact: tuple[float, float]
    error: float
    epsilon_shown: float
    delta_shown: float
    epsilon_exact: float
    delta_exact: float
    strays: float
    repeated: bool
    seconds: float

    @property
    def refuted(self) -> bool:
        """Whether the counts refute the claim."""
        return self.delta_shown > self.delta

    @property
    def off_plan(self) -> bool:
        """Whether what ran is not what the plan says: wrong probabilities, or draws that repeat."""
        return self.strays < self.error or self.repeated

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not (self.refuted or self.off_plan)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        shown = self.epsilon_shown if self.epsilon_shown < float("inf") else None
        return {
            "mechanism": self.mechanism,
            "case": self.name,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "trials": self.counts.trials,
            "joined": self.counts.joined / self.counts.trials,
            "without": self.counts.without / self.counts.trials,
            "exact": list(self.exact),
            "epsilon_shown": shown,
            "delta_shown": self.delta_shown,
            "epsilon_exact": self.epsilon_exact if self.epsilon_exact < float("inf") else None,
            "delta_exact": self.delta_exact,
            "error": self.error,
            "refuted": self.refuted,
            "off_plan": self.off_plan,
            "seconds": self.seconds,
        }


def examine(case: Case, trials: int, error: float = ERROR) -> Finding:
    """Run a case.

    Args:
        case: what to run.
        trials: of each side, rounded up to whole releases.
        error: chance of a false alarm: that a bound is wrong, or that right probabilities seem to stray.

    Returns:
        What was found.
    """
    begun = perf_counter()
    releases = max(2, ceil(trials * case.share / case.copies))
    joined, repeated = _run(case.joined, case.copies, releases, case.exact[0])
    without, again = _run(case.without, case.copies, releases, case.exact[1])
    counts = Counts(joined, without, releases * case.copies)
    budget = case.budget
    return Finding(
        case.mechanism,
        case.name,
        budget.epsilon,
        budget.delta,
        counts,
        case.exact,
        error,
        epsilon_shown(counts, budget.delta, error),
        delta_shown(counts, budget.epsilon, error),
        *_most(case.exact, budget),
        min(1.0, 2.0 * min(strays(n, counts.trials, p) for n, p in zip((joined, without), case.exact, strict=True))),
        repeated or again,
        perf_counter() - begun,
    )


def _run(release: Callable[[], tuple[int, Any]], copies: int, releases: int, chance: float) -> tuple[int, bool]:
    """Return how often the event happened, and whether two releases agree in all copies, beyond chance."""
    hits, outcomes = 0, []
    for _ in range(releases):
        count, outcome = release()
        hits += count
        outcomes.append(outcome)
    # Two independent releases agree in a copy's event with probability p^2 + q^2, so in all of them:
    agreeing = (chance**2 + (1 - chance) ** 2) ** copies
    tellable = agreeing * releases**2 < 1e-12
    return hits, tellable and len(set(outcomes)) < releases


def _most(exact: tuple[float, float], budget: "Budget") -> tuple[float, float]:
    """Return epsilon at the claim's delta and delta at its epsilon, by exact probabilities."""
    one, other = exact
    pairs = [(one, other), (other, one), (1 - one, 1 - other), (1 - other, 1 - one)]
    return (
        max(0.0, *(ratio(least - budget.delta, most) for least, most in pairs)),
        max(0.0, *(least - exp(budget.epsilon) * most for least, most in pairs)),
    )
