"""The audit runs the real release path and measures the information about one user in the releases.

A case consists of two neighbouring collections and an event. The counts of the event with and without the additional
user give confidence intervals, and these give lower bounds of epsilon and delta. A bound above the claim refutes the
claim. The counts are also compared with the exact probabilities of the event under the plan. This comparison detects
noise that is smaller than planned, even if the claim is still true.

**Many trials in one release.** A case contains many copies of its two collections, with disjoint users and items. In
one release, either all copies or none contain the additional user. Each copy is one trial. The trials are independent,
because samples, orders and noise are separate draws for each user and item, and the weight of an item depends only on
users of its copy. Therefore the part of the release that belongs to a copy has the same distribution as the release of
a collection with only that copy. If a public number depends on all copies, such as a threshold that follows from the
number of candidates, the event requires a particular value of that number. The case is built so that the number has
another value in any of the trials with probability below 1e-4.

**Lower bounds.** The event occurs in some of n independent trials with the additional user, and in some of n
independent trials without this user. The intervals of Clopper and Pearson (Biometrika 1934) contain both probabilities
except with a given probability of error. This probability is divided among four one-sided bounds, a lower and an upper
bound with and without the additional user. A mechanism that is (epsilon, delta)-private satisfies P(E) <= e^epsilon
P'(E) + delta in both directions, for the event and for its complement. Each of these four inequalities is evaluated at
the bounds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, exp, inf, log
from typing import Any, Final

from scipy.special import bdtr, bdtrc, betaincinv

from voxpop.errors import InputError
from voxpop.privacy.budget import Budget, check_choice, check_whole
from voxpop.release.registry import MECHANISMS, load_object

ERROR = 1e-9
"""The default probability that the bounds of one case are wrong."""


_Pairs = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """The counts of an event.

    Attributes:
        joined: The number of trials with the additional user in which the event occurred.
        without: The number of trials without the additional user in which the event occurred.
        trials: The number of trials with the additional user, which is also the number of trials without this user.
    """

    joined: int
    without: int
    trials: int

    def directions(self, failure_probability: float) -> _Pairs:
        """Return the pairs (at least, at most) that privacy compares.

        The probability that any of these bounds is wrong is at most `failure_probability`.
        """
        hits = self.joined, self.without
        return directions(*(clopper_pearson(each, self.trials, failure_probability / 4) for each in hits))


def directions(joined: tuple[float, float], without: tuple[float, float]) -> _Pairs:
    """Return the pairs (at least, at most) that privacy compares, for the event and for its complement.

    Args:
        joined: The bounds of the probability of the event with the additional user.
        without: The bounds of the probability of the event without the additional user.
    """
    (low, high), (low_without, high_without) = joined, without
    events = [(low, high_without), (low_without, high)]
    return [*events, *((1.0 - most, 1.0 - least) for least, most in reversed(events))]


def clopper_pearson(hits: int, trials: int, failure_probability: float) -> tuple[float, float]:
    """Return a lower and an upper bound of a probability, each wrong with at most the error probability.

    Args:
        hits: The number of trials with the event.
        trials: The number of independent trials, at least 1.
        failure_probability: The probability of error, more than 0.

    Example:
        >>> low, high = clopper_pearson(0, 100, 0.05)
        >>> low, round(high, 4)
        (0.0, 0.0295)
    """
    low = float(betaincinv(hits, trials - hits + 1, failure_probability)) if hits else 0.0
    high = 1.0 - float(betaincinv(trials - hits, hits + 1, failure_probability)) if hits < trials else 1.0
    return low, high


def epsilon_shown(counts: TrialCounts, delta: float, failure_probability: float = ERROR) -> float:
    """Return an epsilon below which no mechanism with this delta gives such counts, except with the error probability.

    Args:
        counts: The counts of an event.
        delta: The delta of the claim.
        failure_probability: The probability that the bound is wrong.

    Returns:
        The lower bound, which is at least 0, and infinite if no epsilon is large enough.

    Example:
        >>> 0.9 < epsilon_shown(TrialCounts(joined=73_000, without=27_000, trials=100_000), delta=0.0) < 1
        True
    """
    return _largest_epsilon(counts.directions(failure_probability), delta)


def _largest_epsilon(pairs: _Pairs, delta: float) -> float:
    above = [(least - delta, most) for least, most in pairs if least > delta]
    return max([0.0, *(log(least / most) if most > 0.0 else inf for least, most in above)])


def delta_shown(counts: TrialCounts, epsilon: float, failure_probability: float = ERROR) -> float:
    """Return a delta below which no mechanism with this epsilon gives such counts, except with the error probability.

    Args:
        counts: The counts of an event.
        epsilon: The epsilon of the claim.
        failure_probability: The probability that the bound is wrong.
    """
    return _largest_delta(counts.directions(failure_probability), epsilon)


def _largest_delta(pairs: _Pairs, epsilon: float) -> float:
    return max(0.0, *(least - exp(epsilon) * most for least, most in pairs))


def strays(hits: int, trials: int, probability: float) -> float:
    """Return the two-sided p-value of a count, which is the probability of a count at least as extreme.

    Args:
        hits: The number of trials with the event.
        trials: The number of independent trials.
        probability: The probability of the event in one trial.
    """
    below = float(bdtr(hits, trials, probability))
    above = float(bdtrc(hits - 1, trials, probability)) if hits else 1.0
    return min(1.0, 2.0 * min(below, above))


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Two neighbouring collections in many copies, and an event.

    Attributes:
        mechanism: The mechanism in words.
        name: The name of the case.
        budget: The claim.
        copies: The number of trials in one release.
        joined: A function that runs one release of the copies with the additional user. The function returns the number
            of copies in which the event occurred, and a digest that identifies these copies.
        without: The same function for copies without the additional user.
        exact: The probabilities of the event with and without the additional user, according to the plan.
        share: The share of the requested trials to run, below 1 for slow cases.
    """

    mechanism: str
    name: str
    budget: Budget
    copies: int
    joined: Callable[[], tuple[int, Any]]
    without: Callable[[], tuple[int, Any]]
    exact: tuple[float, float]
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of the audit of one case.

    Attributes:
        mechanism: The mechanism in words.
        name: The name of the case.
        epsilon: The epsilon of the claim.
        delta: The delta of the claim.
        counts: The counts of the event.
        exact: The probabilities of the event according to the plan.
        failure_probability: The probability that the two lower bounds are wrong.
        repeated: Whether two releases with new secrets agreed in every copy.
    """

    mechanism: str
    name: str
    epsilon: float
    delta: float
    counts: TrialCounts
    exact: tuple[float, float]
    failure_probability: float
    repeated: bool

    @property
    def epsilon_shown(self) -> float:
        """The lower bound of epsilon at the claim's delta."""
        return epsilon_shown(self.counts, self.delta, self.failure_probability)

    @property
    def delta_shown(self) -> float:
        """The lower bound of delta at the claim's epsilon."""
        return delta_shown(self.counts, self.epsilon, self.failure_probability)

    @property
    def epsilon_exact(self) -> float:
        """The maximum epsilon that this case can show, from the exact probabilities at the claim's delta."""
        return _largest_epsilon(self._pairs(), self.delta)

    @property
    def delta_exact(self) -> float:
        """The delta that the exact probabilities give at the claim's epsilon."""
        return _largest_delta(self._pairs(), self.epsilon)

    def _pairs(self) -> _Pairs:
        return directions(*((probability, probability) for probability in self.exact))

    @property
    def strays(self) -> float:
        """The probability of a count this far from its expectation, for the less probable of the two counts."""
        hits = self.counts.joined, self.counts.without
        return min(1.0, 2.0 * min(strays(n, self.counts.trials, p) for n, p in zip(hits, self.exact, strict=True)))

    @property
    def refuted(self) -> bool:
        """Whether the counts refute the claim."""
        return self.delta_shown > self.delta

    @property
    def off_plan(self) -> bool:
        """Return whether the runs contradict the plan, because of wrong probabilities or repeated draws."""
        return self.strays < self.failure_probability or self.repeated

    @property
    def passed(self) -> bool:
        """Whether the audit found no contradiction."""
        return not (self.refuted or self.off_plan)

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers, ready for JSON. An infinite epsilon is null."""
        names = "epsilon_shown", "delta_shown", "epsilon_exact", "delta_exact", "refuted", "off_plan"
        numbers = {name: getattr(self, name) for name in ("epsilon", "delta", "failure_probability", *names)}
        return {
            "mechanism": self.mechanism,
            "case": self.name,
            "trials": self.counts.trials,
            "joined": self.counts.joined / self.counts.trials,
            "without": self.counts.without / self.counts.trials,
            "exact": list(self.exact),
            **{name: None if number == inf else number for name, number in numbers.items()},
        }


AUDITED: Final[dict[str, str]] = {each.command: each.audit for each in MECHANISMS if each.audit is not None}
"""The audit case of each mechanism as `module:function`, by command name."""


def audit(mechanism: str, trials: int = 100_000, failure_probability: float = ERROR) -> Finding:
    """Audit a mechanism by running its case and comparing the observed counts with the claim and with the plan.

    Args:
        mechanism: The name of its command: "items", "ngrams", "heavy-hitters", "sequences", "profile" or "top".
        trials: The number of trials with the additional user, which is also the number of trials without this user.
        failure_probability: The probability that a bound is wrong, and the probability that correct counts are
            reported as a deviation.

    Raises:
        InputError: If the mechanism is unknown or a number is out of range.
    """
    check_choice("mechanism", mechanism, tuple(AUDITED))
    check_whole("trials", trials, 2**40, "the number of trials of each side of the case")
    if not 0 < failure_probability < 0.5:
        raise InputError(
            "`failure_probability` is the probability of a false alarm. It must be above 0 and below 0.5, got "
            f"{failure_probability}."
        )
    case: Case = load_object(AUDITED[mechanism])()
    return examine(case, trials, failure_probability)


def examine(case: Case, trials: int, failure_probability: float = ERROR) -> Finding:
    """Run a case.

    Args:
        case: The case.
        trials: The number of trials on each side, rounded up to whole releases.
        failure_probability: The probability of a false alarm, that is, of a wrong bound or of correct probabilities
            reported as wrong.

    Returns:
        The finding.
    """
    releases = max(2, ceil(trials * case.share / case.copies))
    joined, repeated = _run(case.joined, case.copies, releases, case.exact[0])
    without, again = _run(case.without, case.copies, releases, case.exact[1])
    counts = TrialCounts(joined, without, releases * case.copies)
    claim = case.budget.epsilon, case.budget.delta
    return Finding(case.mechanism, case.name, *claim, counts, case.exact, failure_probability, repeated or again)


def _run(release: Callable[[], tuple[int, Any]], copies: int, releases: int, chance: float) -> tuple[int, bool]:
    """Return the count of the event, and whether two releases agree in all copies beyond coincidence."""
    hits, outcomes = 0, []
    for _ in range(releases):
        count, outcome = release()
        hits += count
        outcomes.append(outcome)
    # Two independent releases agree on the event of one copy with probability p^2 + q^2, and on all copies with this
    # probability to the power of `copies`.
    agreeing = (chance**2 + (1 - chance) ** 2) ** copies
    tellable = agreeing * releases**2 < 1e-12
    return hits, tellable and len(set(outcomes)) < releases
