"""How a user shares its weight over the items of its pool in one adaptive round: l2-descent under a cap for each item.

The cap falls with the number of items in the user's pool that are not released, so that any number of novel items is
released with at most the planned probability (docs/privacy/adaptive.md, "Novel items").
"""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from voxpop.kernels.arrays import DROPPED, ONE_CAP, UNDECIDED, Bytes, Int32s, Int64s, Uint64s
from voxpop.kernels.proved import proved
from voxpop.privacy.cumulative import STEPS, Caps
from voxpop.privacy.weightings.builtin import PolicyGaussian
from voxpop.privacy.weightings.rule import USERS_BOUND, WEIGHT_ROUNDING, RuleSetting

NOTHING_LISTED = np.empty(0, np.uint8)


@final
@dataclass(frozen=True, slots=True)
class CappedDescent:
    """One round's l2-descent under caps.

    Attributes:
        setting: limit, grid and cutoff.
        caps: of all rounds.
        number: of the round, from 0.
    """

    setting: RuleSetting
    caps: Caps
    number: int

    @property
    def limit(self) -> int:
        """Most items of one user."""
        return self.setting.limit

    @property
    def draws(self) -> bool:
        """Whether users take part by chance."""
        return self.caps.chances[-1] < 1.0

    @property
    def largest(self) -> float:
        """The largest weight that one user gives one item."""
        return 1.0

    @property
    @proved("adaptive.md#shared-items")
    def sensitivity(self) -> float:
        """The largest change of the histogram by one user, on this grid.

        Proof: "the weights of the shared items move by at most S in l2"
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
        """Return the most weight that each user gives an item in this round, in 2^-30.

        Proof: "Given the past, it gets weight with probability at most q(t)"

        Args:
            undecided: int64 (users), undecided items of the user's pool.
            dropped: int64 (users), dropped items of the pool: they count, or weights would grow as items are dropped.
            bits: uint64 (users), uniform draws by which users take part; None where all do.
            listed: int64 (users), undecided items of a public list, which no cap binds and no chance removes. They are
                among the undecided items because users draw from all of these (docs/privacy/known.md).
        """
        level = self.caps.level(undecided + dropped - listed)
        given = np.array([weights[self.number] for weights in self.caps.weights])[level]
        if bits is not None:
            # Of `undecided` items at most `limit` are drawn, so one is drawn with the chance of its level at most.
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
        """Add bounded sets to the histogram in place, users in order.

        Args:
            histogram: int64 (ids), in units.
            items: int32, the items of all users.
            starts: int64 (users + 1).
            states: uint8 (ids), the state of each item; see `ScoreStep`.
            given: int64 (users), from `given`.
            listed: uint8 (ids), nonzero for items of a public list; empty without a list.
        """
        from voxpop.kernels.weigh import capped_descent

        # By state, rounded down but above 0; decided items are in no set.
        cutoffs = np.arange(-DROPPED, UNDECIDED, dtype=np.int64) * (self.setting.cutoff // STEPS)
        cutoffs[-1] = self.setting.cutoff
        capped_descent(histogram, items, starts, states, np.maximum(cutoffs, 1), self.setting.unit, given, listed)


@proved("adaptive.md#the-projection")
def on_lattice(units: int) -> bool:
    """Tell whether a cap is one that `lattice` returns.

    Proof: "as 1 / a^2 is at least 1/4 above and 1/16 below a whole number"
    """
    # 1 / cap^2 modulo 1, in exact integers.
    rest, square = ONE_CAP**2 % max(units, 1) ** 2, units**2
    return units in (0, ONE_CAP) or (square <= 4 * rest and 16 * rest <= 15 * square)
