"""The weighting of a user's pool in one adaptive round, which is l2-descent with a cap on each item.

The cap decreases with the number of unreleased items in the user's pool, so that the probability of releasing any novel
item is at most the planned probability, for any number of novel items (docs/privacy/adaptive.md, "Novel items").
"""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from voxpop.kernels.arrays import DROPPED, NOTHING_LISTED, ONE_CAP, UNDECIDED, Bytes, Int32s, Int64s, Uint64s
from voxpop.kernels.proved import proved
from voxpop.privacy.cumulative import STEPS, Caps
from voxpop.privacy.weightings.builtin import PolicyGaussian
from voxpop.privacy.weightings.rule import USERS_BOUND, WEIGHT_ROUNDING, RuleSetting


@final
@dataclass(frozen=True, slots=True)
class CappedDescent:
    """The l2-descent of one round, with caps.

    Attributes:
        setting: The limit, the grid and the cutoff.
        caps: The caps of all rounds.
        number: The index of the round, starting at 0.
    """

    setting: RuleSetting
    caps: Caps
    number: int

    @property
    def limit(self) -> int:
        """The maximum number of items per user."""
        return self.setting.limit

    @property
    def draws(self) -> bool:
        """Whether users take part at random."""
        return self.caps.chances[-1] < 1.0

    @property
    def largest(self) -> float:
        """The largest weight that one user adds to one item."""
        return 1.0

    @property
    @proved("adaptive.md#shared-items")
    def sensitivity(self) -> float:
        """The largest change of the histogram by one user, on this grid.

        Proof: "the weights of the shared items move by at most S_r in l2"
        """
        error = PolicyGaussian().step_error(self.setting)
        least = self.caps.weights[-1][self.number]
        if least < ONE_CAP:
            error += 4 * WEIGHT_ROUNDING * ONE_CAP / least
        return 1.0 + 2.0 * USERS_BOUND * error

    @proved("adaptive.md#novel-items")
    def given(
        self, undecided: Int64s, dropped: Int64s, bits: Uint64s | None, listed: Int64s | Literal[0] = 0
    ) -> Int64s:
        """Return the maximum weight that each user adds to an item in this round, in units of 2^-30.

        Proof: "Given the past, a novel item gets weight with probability at most q(t)."

        Args:
            undecided: int64 (users), the number of undecided items in the user's pool.
            dropped: int64 (users), the number of dropped items in the pool. They are counted, because otherwise weights
                would increase when items are dropped.
            bits: uint64 (users), uniform draws that decide which users take part, or None if all users take part.
            listed: int64 (users), the number of undecided items of a public list. They have no cap and are never
                removed at random. They are included in `undecided`, because users draw from all undecided items
                (docs/privacy/known.md).
        """
        level = self.caps.level(undecided + dropped - listed)
        given = np.array([weights[self.number] for weights in self.caps.weights])[level]
        if bits is not None:
            # At most `limit` of `undecided` items are drawn, so the probability that one item gets weight is at most
            # the probability of its level.
            chance = np.array(self.caps.chances)[level] * np.maximum(undecided / self.limit, 1.0)
            given[(bits >> np.uint64(11)) * 2.0**-53 >= chance] = 0
        return given

    def add(
        self,
        histogram: Int64s,
        items: Int32s,
        starts: Int64s,
        states: Bytes,
        given: Int64s,
        listed: Bytes = NOTHING_LISTED,
    ) -> None:
        """Add bounded sets to the histogram in place, in the order of users.

        Args:
            histogram: int64 (ids), the weight by id, in units.
            items: int32, the items of all users.
            starts: int64 (users + 1), the first position of each user's items.
            states: uint8 (ids), the state of each item; see `ScoreStep`.
            given: int64 (users), the maximum weights, as returned by the method `given`.
            listed: uint8 (ids), nonzero for items of a public list; empty if there is no list.
        """
        from voxpop.kernels.weigh import capped_descent

        # Compute the cutoff of each state, rounded down but above 0. Decided items are in no bounded set.
        cutoffs = np.arange(-DROPPED, UNDECIDED, dtype=np.int64) * (self.setting.cutoff // STEPS)
        cutoffs[-1] = self.setting.cutoff
        capped_descent(histogram, items, starts, states, np.maximum(cutoffs, 1), self.setting.unit, given, listed)


@proved("adaptive.md#the-projection")
def on_lattice(units: int) -> bool:
    """Return whether a cap is on the lattice, that is, whether `lattice` can return it.

    Proof: "because 1 / a^2 is at least 1/4 above and 1/16 below a whole number"
    """
    # Compute 1 / cap^2 modulo 1 in exact integers.
    rest, square = ONE_CAP**2 % max(units, 1) ** 2, units**2
    return units in (0, ONE_CAP) or (square <= 4 * rest and 16 * rest <= 15 * square)
