"""The guarantee of a release, with its numbers, its composition with other guarantees, and its meaning in words."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from math import ceil, exp, floor, log10
from typing import Any, Final

from voxpop.errors import InputError, required
from voxpop.kernels.proved import proved
from voxpop.privacy.budget import card

_RELATIVE_ERROR = 1 + 1e-10
"""An upper bound on the relative error of the doubles in a spend."""
_LARGEST_FLOAT = sys.float_info.max
"""The largest finite number."""


@dataclass(frozen=True, slots=True)
class Expense:
    """The detailed cost of a release with Gaussian noise. Delta is novel + delta_G(epsilon; mu) at every epsilon.

    This formula applies in both directions between neighbours. Therefore a symmetric pair dominates the release. On
    each side, the pair has a revealing outcome with probability `hit`. Otherwise, the pair is that of a Gaussian
    mechanism with parameter `mu` (docs/privacy/composition.md, "One kind of pair").

    Args:
        novel: The probability of releasing an item that only one user has, including numerical slack, or 0 if every
            possible item is known in advance.
        mu: The ratio of sensitivity to sigma. For several releases, it is the square root of the sum of the squares of
            their ratios.
        two_sided: Whether there are also revealing outcomes if the user is absent, as in adaptive rounds. No
            dp-accounting event has this form.
    """

    novel: float
    mu: float
    two_sided: bool = False

    @property
    @proved("composition.md#one-kind-of-pair")
    def hit(self) -> float:
        """The probability of a revealing outcome of the dominating pair, novel / (2 Phi(-mu / 2)), rounded up.

        Proof: "This is at least d + delta_G(epsilon) if h (1 - delta_G(epsilon)) >= d."
        """
        from scipy.special import log_ndtr

        if self.novel == 0:
            return 0.0
        return min(
            1.0,
            math.exp(min(0.0, math.log(self.novel) - math.log(2) - float(log_ndtr(-self.mu / 2)))) * _RELATIVE_ERROR,
        )

    def to_dict(self) -> dict[str, float | bool]:
        """Return the numbers as a dictionary for JSON."""
        return {"novel": self.novel, "mu": self.mu, **({"two_sided": True} if self.two_sided else {})}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Expense":
        """Return the spend from the dictionary that `to_dict` returned.

        Raises:
            ValueError: A number is out of range, or a name is unknown.
        """
        novel, mu, two_sided = values["novel"], values["mu"], values.get("two_sided", False)
        known = {*values} <= {"novel", "mu", "two_sided"}
        if (
            not known
            or type(two_sided) is not bool
            or not (is_within(novel, 0, 1) and is_within(mu, 0, _LARGEST_FLOAT))
        ):
            raise ValueError("out of range")
        return cls(float(novel), float(mu), two_sided)


@proved("composition.md#claim-2-budgets-chosen-after-results")
def dominating_mu(epsilon: float) -> float:
    """Return the mu, rounded up, of the Gaussian mechanism that dominates every (epsilon, 0)-private release.

    Proof: "Randomised response of epsilon_j is dominated by a Gaussian mechanism whose trade-off function passes
    through its vertex."

    Randomised response with this epsilon returns the true answer with probability p = e^epsilon / (1 + e^epsilon). Its
    trade-off function has one vertex. If the trade-off function of a Gaussian mechanism passes through this vertex, it
    is nowhere above the trade-off function of randomised response. This is the case at mu = 2 Phi^-1(p) (Dong, Roth and
    Su, 2022).
    """
    from scipy.special import ndtri_exp

    # Phi^-1(p) = -Phi^-1(1 - p), with ln(1 - p) = -ln(1 + e^epsilon).
    return -2 * float(ndtri_exp(-(epsilon + math.log1p(math.exp(-epsilon))))) * _RELATIVE_ERROR


def is_within(value: object, least: float, most: float) -> bool:
    """Return whether a value from a file is a number in a range, and not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


@proved("composition.md#one-kind-of-pair")
def gaussian_spend(pairs: Sequence[tuple[float, float]], slack: float = 0.0, rest: float = 0.0) -> Expense:
    """Return the spend of Gaussian rounds, rounded up.

    Proof: "A spend means that in both directions, for every epsilon >= 0, the release is (epsilon, d + delta_G(epsilon;
    mu))-private."

    Args:
        pairs: For each round, the probability that a novel item is released, and the ratio of sensitivity to sigma.
        slack: The cost of finite arithmetic.
        rest: The total mu^2 of later releases about known items.

    Returns:
        The spend of all rounds together.
    """
    from voxpop.privacy.joint import either

    novel = either([novel for novel, _ in pairs])
    mu = math.sqrt(math.fsum([rest, *(mu * mu for _, mu in pairs)]))
    return Expense(min(1.0, novel * _RELATIVE_ERROR + slack), mu * _RELATIVE_ERROR)


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The guarantee that a release gives to each user.

    Args:
        epsilon: The epsilon of differential privacy.
        delta: The delta of differential privacy.
        neighbours: The neighbouring relation, which describes the difference between two neighbouring data sets.
        private: Whether the release is private. A release with a seed is not private, because other people can have the
            seed. In this case, there is no guarantee.
        server_view: A description of the data that parties other than the readers of the release received. The
            guarantee does not cover these data.
        spend: The detailed cost of a Gaussian release for composition, or None. Comparisons of guarantees ignore this
            field.

    Example:
        >>> print(Guarantee(4, 1e-7))
        (4, 1e-07)-DP, one user added or removed
    """

    epsilon: float
    delta: float
    neighbours: str = "one user added or removed"
    private: bool = True
    server_view: str = ""
    spend: Expense | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        promise = f"({self.epsilon:g}, {self.delta:g})-DP, {self.neighbours}"
        return promise if self.private else f"NOT PRIVATE: made with a seed; otherwise {promise}"

    def _repr_html_(self) -> str:
        """Return the statement, its meaning and cautions as HTML for a notebook."""
        return card(str(self), [meaning(self)], warned=cautions(self))

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as a dictionary for JSON.

        Returns:
            One entry per field. `server_view` and `spend` are omitted if they are not set.
        """
        values: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": self.neighbours,
            "private": self.private,
        }
        if self.server_view:
            values["server_view"] = self.server_view
        if self.spend is not None:
            values["spend"] = self.spend.to_dict()
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Guarantee":
        """Return the guarantee from a dictionary that `to_dict` returned.

        Args:
            values: The dictionary that `to_dict` returned.

        Returns:
            The guarantee.

        Raises:
            TypeError: A field is missing, unknown or of the wrong type.
            ValueError: A number is out of range.
        """
        spend = values.get("spend")
        found = cls(**{**values, "spend": None if spend is None else Expense.from_dict(spend)})
        texts = (found.neighbours, found.server_view)
        if type(found.private) is not bool or not all(isinstance(each, str) and each.isprintable() for each in texts):
            raise TypeError("not a guarantee")
        # Composition adds up loaded guarantees, so a negative value would cancel the costs of other releases.
        if not (is_within(found.epsilon, 0, _LARGEST_FLOAT) and is_within(found.delta, 0, 1)):
            raise ValueError("out of range")
        return found

    def to_dp_event(self) -> Any:
        """Return the release as a dp-accounting event, for composition with releases of other software.

        A Gaussian release becomes the events that correspond to its `spend`, and a release with delta 0 becomes Laplace
        noise. In every composition, these events cost at least as much as the release itself, for every epsilon up to
        20. This method requires dp-accounting.

        Returns:
            A `dp_accounting.DpEvent`, for neighbouring data sets that differ by one user added or removed.

        Raises:
            InputError: No event represents the release, because it has a delta, and it uses adaptive rounds or no
                Gaussian noise.
        """
        return event_of(self)


# The rest of this module describes a guarantee in words, with odds before and after a release, and with cautions.

WHY_SMALLER: Final = (
    "The second total is below the sum because independent Gaussian noise adds up by squares, so the losses of several "
    "releases rarely reach their largest values together."
)
"""A sentence for pages and terminals that show two totals."""

LARGE_EPSILON = 4.0
HARDLY_ANY = 10.0
LARGE_DELTA = 1e-5
FAR_BELOW = 0.01
"""Delta is considered to be far below 1 / n for n people if it is at most this fraction of 1 / n."""
LARGEST_EXPONENT = 700.0
SUPPORT = 100.0
"""The odds apply only to conclusions that a release suggests with a probability of at least this multiple of delta."""
NINES = 8


def odds_after(epsilon: float, delta: float, before: float) -> float:
    """Return the largest probability, after a release, that a particular person took part.

    This bound is valid for every conclusion that a release suggests with a probability of at least 100 delta if the
    person took part. Let d be the probability of the conclusion in this case. If the person did not take part, the
    conclusion has a probability of at least (d - delta) / e^epsilon, which is at least 0.99 d / e^epsilon, and the
    bound follows from Bayes' rule. If delta is 0, the bound is valid for every conclusion.

    Args:
        epsilon: The epsilon of the guarantee.
        delta: The delta of the guarantee.
        before: The probability before the release, strictly between 0 and 1.

    Returns:
        The largest probability after the release.
    """
    grown = exp(min(epsilon, LARGEST_EXPONENT)) * (SUPPORT / (SUPPORT - 1.0) if delta else 1.0)
    # By Bayes' rule, the odds increase by a factor of at most e^epsilon, times 100 / 99 if delta is above 0.
    return grown * before / (grown * before + 1.0 - before)


def people_covered(delta: float) -> int:
    """Return the largest number of people n for which delta is far below 1 / n, that is, at most 0.01 / n."""
    return floor(FAR_BELOW / delta * (1 + 1e-12))


def meaning(guarantee: "Guarantee", user: str = "user") -> str:
    """Return the meaning of a guarantee as a sentence.

    Args:
        guarantee: The guarantee of a release.
        user: The word for one user.
    """
    if not guarantee.private:
        return "A reader who knows the seed can compute the noise and subtract it. Use this for tests only."
    plus = f" plus {guarantee.delta:g}" if guarantee.delta else ""
    return (
        f"Adding or removing all rows of one {user} changes the probability of any result by at most a factor of "
        f"{factor(guarantee.epsilon)} (e^{guarantee.epsilon:g}){plus}."
    )


def cautions(guarantee: "Guarantee") -> list[str]:
    """Return warnings about a guarantee, or an empty list if there is nothing to warn about.

    Args:
        guarantee: The guarantee of a release.

    Returns:
        Sentences about epsilon above 4 and about delta above 1e-5. The list is empty for a release that is not private.
    """
    if not guarantee.private:
        return []
    said = []
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if epsilon > LARGE_EPSILON:
        strength = "gives hardly any protection" if epsilon > HARDLY_ANY else "is large"
        sure = percent_at_most(odds_after(epsilon, delta, 0.5))
        said.append(
            f"Epsilon {epsilon:g} {strength}. A reader who considered it equally likely that a person took part or not "
            f"can be up to {sure} sure after this release. At most 1 is strict."
        )
    if delta > LARGE_DELTA:
        people = people_covered(delta)
        fits = "It is too large for any number of people." if not people else "It suits the data of a single person."
        fits = fits if people < 2 else f"It suits at most {people:,} people."
        said.append(
            f"Delta {delta:g} is large. It should be a hundredth of one over the number of people, or less. {fits}"
        )
    return said


def at_most(number: float) -> str:
    """Return a bound to three significant digits, rounded up."""
    if number <= 0:
        return "0"
    if number == int(number) and number < 1e15:
        return f"{int(number):,}"
    if number >= 1000:
        return f"{ceil(number):,}"
    rounded = Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(number)
    exponent = floor(log10(number))
    return f"{float(rounded):,.{2 - exponent}f}" if exponent >= -4 else f"{float(rounded):.3g}"


def factor(epsilon: float) -> str:
    """Return e^epsilon, rounded up. From a million on, it is written with a power of ten."""
    grown = exp(min(epsilon, LARGEST_EXPONENT))
    if grown < 1e6:
        return at_most(grown)
    digits, power = f"{Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(grown):.1e}".split("e")
    return f"{digits} × 10^{int(power)}"


def percent_at_most(share: float) -> str:
    """Return an upper bound on a share in percent, rounded up to a tenth, or with more nines if it is close to 100 %.

    The result is "100 %" only if `share` is at least 1.
    """
    exact = Context(prec=40, rounding=ROUND_CEILING).create_decimal_from_float(100 * share)
    for digits in range(1, NINES):
        up = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_CEILING)
        if share >= 1.0 or up < 100:
            return f"{up.normalize():f} %"
    return "just below 100 %"


def chance_at_most(share: float) -> str:
    """Return an upper bound on a probability, rounded up, as "1 in 367" if it is small and in percent otherwise."""
    return f"1 in {floor(1 / share):,}" if 0 < share < 0.005 else percent_at_most(share)


# Guarantees as events of dp-accounting.
#
# * An `Expense` becomes a Gaussian event and an event that reveals the user with probability `novel`. The second event
#   is Laplace noise of scale 1/100 on a sample. For probabilities above 1e-20 and every epsilon up to 20, this event
#   covers all but a fraction of 1e-4 of the probability. Therefore the probability is increased by this fraction.
# * Randomised response is the worst release with a given epsilon and no delta, but dp-accounting supports it only for
#   replaced users. Laplace noise of scale 1/c with c = 2 ln((1 + e^epsilon) / 2) is at least as bad, because its
#   delta(x) = 1 - e^((x - c) / 2) is at least (e^epsilon - e^x) / (1 + e^epsilon), the delta of randomised response, at
#   every x, with equality at x = 0.

BETRAYAL = 100.0
LEAK = 1 + 1e-4


def event_of(guarantee: "Guarantee") -> Any:
    """Return an event that dominates the release, as described in `Guarantee.to_dp_event`."""
    dp_event = required("dp_accounting.dp_event", "an event", "dp-accounting")
    if not guarantee.private:
        return dp_event.NonPrivateDpEvent()
    if guarantee.spend is not None and not guarantee.spend.two_sided:
        gaussian = dp_event.GaussianDpEvent(1 / guarantee.spend.mu)
        if guarantee.spend.novel <= 0:
            return gaussian
        hit = dp_event.PoissonSampledDpEvent(
            min(1.0, guarantee.spend.novel * LEAK), dp_event.LaplaceDpEvent(1 / BETRAYAL)
        )
        return dp_event.ComposedDpEvent([gaussian, hit])
    if guarantee.delta == 0:
        return dp_event.LaplaceDpEvent(1 / (2 * math.log((1 + math.exp(guarantee.epsilon)) / 2)))
    raise InputError(
        f"dp-accounting has no event for a release that is ({guarantee.epsilon:g}, {guarantee.delta:g})-private "
        "in adaptive rounds or without Gaussian noise. Compose the rest, and add this epsilon and delta to the result."
    )
