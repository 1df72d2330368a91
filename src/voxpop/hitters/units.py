"""What each unit costs, and the line that nobody can pass: the optimal selection by one party that sees every word."""

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from voxpop.errors import BudgetError
from voxpop.hitters.limits import MOST_PARTS, MOST_SUMS
from voxpop.privacy.search import least_whole

if TYPE_CHECKING:
    from voxpop.hitters.heavy_hitters import HeavyHitters
    from voxpop.privacy.budget import Budget

TARGET = 0.9
_MOST_HOLDERS = 10**15
SYMBOLS = {"characters": 26, "bytes": 256}
"""Of an alphabet, to say how many sums a round may have; of characters those of English. Tokens have no number."""


def costs_of_units(hitters: "HeavyHitters", budget: "Budget") -> list[dict[str, Any]]:
    """Return one row for each way to cut words into rounds: unit, rounds, holders, and sums about one prefix.

    Of a federation, too: how many living prefixes a round can add up in secret.

    Args:
        hitters: what is planned; everything but the unit stays.
        budget: what may be spent.
    """
    # The published accountant knows one unit for all rounds only.
    units: list[Any] = ["auto", 1, 2, 3, 4] if hitters.accounting == "exact" else [1, 2, 3, 4]
    rows = []
    for unit in units:
        try:
            other = replace(hitters, unit=unit)
            plan = other.plan(budget)
        except BudgetError:
            continue
        first, later = other.units
        sums = _children(hitters.alphabet, later)
        rows.append(
            {
                "unit": unit if unit != "auto" else f"auto ({first}, then {later})",
                "rounds": plan.rounds,
                "holders_90": plan.holders_90,
                "first_sums": _children(hitters.alphabet, first),
                "later_sums": sums,
                "most_prefixes": MOST_PARTS * MOST_SUMS // sums if sums else None,
            }
        )
    return rows


def _children(alphabet: str, unit: int) -> int | None:
    """How many continuations of so many symbols a prefix has, those that end before included."""
    if alphabet not in SYMBOLS:
        return None
    # 1 + a + a^2 + ... + a^unit: words that end within the unit, and those that go on.
    return int(sum(SYMBOLS[alphabet] ** size for size in range(unit + 1)))


@lru_cache(maxsize=64)
def central_holders(budget: "Budget") -> int:
    """Return how many holders an item needs under optimal selection, to be released with probability 0.9.

    Args:
        budget: what may be spent; delta more than 0.
    """
    from voxpop.privacy.optimal import selection_probability

    def selected(holders: int) -> bool:
        return float(selection_probability(budget.epsilon, budget.delta, np.array([holders]))[0][0]) >= TARGET

    # The chance of selection rises with the number of holders.
    needed = least_whole(selected, 0, 1, _MOST_HOLDERS)
    if needed is None:
        raise BudgetError("no number of holders up to 10^15 is selected with probability 0.9; raise `delta`.")
    return needed
