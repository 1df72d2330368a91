"""A plan in words and a small table."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from voxpop.errors import BudgetError, InputError
from voxpop.mechanisms.heavy_hitters.constants import MOST_PARTS, MOST_SUMS
from voxpop.privacy.budget import Budget
from voxpop.privacy.numerics import least_whole

# Cost of each unit, and the lower limit: optimal selection by one party that sees all words.

TARGET = 0.9
_MOST_HOLDERS = 10**15
SYMBOLS = {"characters": 26, "bytes": 256}
"""Sizes of alphabets, for the number of sums of a round; of characters those of English. Tokens have no number."""


def costs_of_units(hitters: Any, alphabet: str, budget: Budget) -> list[dict[str, Any]]:
    """Return one row for each way to cut words into rounds: unit, rounds, holders, and sums about one prefix.

    For a federation, also the number of living prefixes that a round can add up in secret.

    Args:
        hitters: the mechanism; all fields but the unit stay.
        alphabet: the kind of symbol.
        budget: the budget of the plan.
    """
    rows = []
    units: list[Any] = ["auto", 1, 2, 3, 4]
    for unit in units:
        try:
            plan = replace(hitters, unit=unit).plan(budget)
        except (BudgetError, InputError):
            continue  # the unit is too long for the budget, or the mechanism has no such unit
        first, later = plan.rules.size(1), plan.rules.unit
        sums = _children(alphabet, later)
        rows.append(
            {
                "unit": unit if unit != "auto" else f"auto ({first}, then {later})",
                "rounds": plan.rounds,
                "holders_90": plan.users_needed(0.9),
                "first_sums": _children(alphabet, first),
                "later_sums": sums,
                "most_prefixes": MOST_PARTS * MOST_SUMS // sums if sums else None,
            }
        )
    return rows


def _children(alphabet: str, unit: int) -> int | None:
    """Number of continuations of a prefix by this number of symbols, including those that end before."""
    if alphabet not in SYMBOLS:
        return None
    # 1 + a + a^2 + ... + a^unit: words that end within the unit, and those that go on.
    return int(sum(SYMBOLS[alphabet] ** size for size in range(unit + 1)))


@lru_cache(maxsize=64)
def central_holders(budget: "Budget") -> int:
    """Return the users needed by an item under optimal selection, to be released with probability 0.9.

    Args:
        budget: the budget; delta must be above 0.
    """
    from voxpop.privacy.decisions import selection_probability

    def selected(holders: int) -> bool:
        return float(selection_probability(budget.epsilon, budget.delta, np.array([holders]))[0][0]) >= TARGET

    # The chance of selection rises with the number of holders.
    needed = least_whole(selected, 0, 1, _MOST_HOLDERS)
    if needed is None:
        raise BudgetError("no number of holders up to 10^15 is selected with probability 0.9; raise `delta`.")
    return needed


_SYMBOLS = {"characters": "characters", "bytes": "bytes", "tokens": "tokens"}


def describe(plan: Mapping[str, Any], guarantee: str = "", two: Budget | None = None, costs: Sequence[str] = ()) -> str:
    """Return the text of a plan from its public numbers.

    Args:
        plan: the numbers.
        guarantee: the guarantee in words.
        two: the budget of a person who counts as two users; None without one.
        costs: lines of `cost_lines`.
    """
    whose = "its most frequent word" if plan["words"] == "one" else "any of its words, drawn anew in each round"
    chance = f"{100 * plan['sampling_rate']:.4g} %"
    asked = f"each with probability {chance}" if plan["sampling"] == "bernoulli" else f"a batch of {chance} of them"
    theorem = f"rate and threshold by Theorem 1 of {plan['paper']}" if "paper" in plan else ""
    lines = [
        f"Heavy hitters of at most {plan['max_length']} {_SYMBOLS[plan['alphabet']]}, the end mark counted,",
        _step(plan),
        *filter(None, ["; ".join(filter(None, [guarantee, theorem]))]),
        "",
        f"  {plan['rounds']} rounds at most; in each, users are asked, {asked}",
        f"  a user votes for {whose}, {_times(plan)}",
        f"  a prefix grows with {plan['theta']} votes or more",
        *_person(two),
        "",
        "Users who must vote for a word for it to be found with probability",
        *(f"  {row['probability']:g}: {row['holders']:,}" for row in plan["holders_needed"]),
        "(a word of full length that shares no prefix with others; most need fewer)",
        *costs,
    ]
    return "\n".join(lines)


def cost_lines(units: Sequence[Mapping[str, Any]], central: int) -> list[str]:
    """Return the cost of each unit as lines of text.

    Args:
        units: rows of `costs_of_units`.
        central: the number of users that optimal selection needs.
    """
    return [
        "",
        "Cost of each unit",
        *map(_unit, units),
        f"(a federation adds sums in vectors of {MOST_SUMS:,}, at most {MOST_PARTS} in a round)",
        f"Optimal selection by one party that sees every word: {central:,} holders",
    ]


def _step(plan: Mapping[str, Any]) -> str:
    first, unit, symbols = plan["first_unit"], plan["unit"], _SYMBOLS[plan["alphabet"]]
    if first != unit and plan["rounds"] > 1:
        return f"{first} {symbols} in the first round and {unit} in each later one"
    return f"{first} {symbols} a round" if first > 1 else "one symbol a round"


def _times(plan: Mapping[str, Any]) -> str:
    if not plan["again"]:
        return "once"
    return f"once; with chance {plan['again']:g} again, and then with chance {plan['further']:g} once more, and so on"


def _person(two: Budget | None) -> list[str]:
    if two is None:
        return []
    return [f"  a person who counts as two users, such as one on two nodes, has ({two.epsilon:g}, {two.delta:.3g})-DP"]


def _unit(row: Mapping[str, Any]) -> str:
    line = f"  unit {row['unit']}: {row['rounds']} rounds, {row['holders_90']:,} holders for probability 0.9"
    if row["first_sums"] is None:
        return line
    later = f"{row['later_sums']:,} for each of at most {row['most_prefixes']:,} prefixes later"
    return f"{line}; {row['first_sums']:,} sums at first, {later}"
