"""A plan in words and a small table."""

from typing import Any

from voxpop.hitters.limits import MOST_PARTS, MOST_SUMS
from voxpop.privacy.budget import Budget

_SYMBOLS = {"characters": "characters", "bytes": "bytes", "tokens": "tokens"}


def describe(
    plan: dict[str, Any], guarantee: str, units: list[dict[str, Any]], central: int, two: Budget | None
) -> str:
    """Return the text of a plan from its public numbers.

    Args:
        plan: the numbers.
        guarantee: in words.
        units: what each unit costs.
        central: holders that the optimal selection needs.
        two: what holds for a person who counts as two users; None where nothing does.
    """
    whose = "its most frequent word" if plan["words"] == "one" else "any of its words, drawn anew in each round"
    chance = f"{100 * plan['sampling_rate']:.4g} %"
    asked = f"each with probability {chance}" if plan["sampling"] == "bernoulli" else f"a batch of {chance} of them"
    lines = [
        f"Heavy hitters of at most {plan['max_length']} {_SYMBOLS[plan['alphabet']]}, the end mark counted,",
        _step(plan),
        f"{guarantee}; {plan['accounting']} accounting",
        "",
        f"  {plan['rounds']} rounds at most; in each, users are asked, {asked}",
        f"  a user votes for {whose}, {_times(plan)}",
        f"  a prefix grows with {plan['theta']} votes or more",
        *_person(two),
        "",
        "Users who must vote for a word for it to be found with probability",
        *(f"  {row['probability']:g}: {row['holders']:,}" for row in plan["holders_needed"]),
        "(a word of full length that shares no prefix with others; most need fewer)",
        "",
        "What each unit would cost",
        *(_unit(row) for row in units),
        f"(a federation adds sums up in secret in vectors of {MOST_SUMS:,}, at most {MOST_PARTS} in a round)",
        f"Optimal selection by one party that sees every word: {central:,} holders",
    ]
    return "\n".join(lines)


def _step(plan: dict[str, Any]) -> str:
    first, unit, symbols = plan["first_unit"], plan["unit"], _SYMBOLS[plan["alphabet"]]
    if first != unit and plan["rounds"] > 1:
        return f"{first} {symbols} in the first round and {unit} in each later one"
    return f"{first} {symbols} a round" if first > 1 else "one symbol a round"


def _times(plan: dict[str, Any]) -> str:
    if not plan["again"]:
        return "once"
    return f"once; with chance {plan['again']:g} again, and then with chance {plan['further']:g} once more, and so on"


def _person(two: Budget | None) -> list[str]:
    if two is None:
        return []
    return [f"  a person who counts as two users, such as one on two nodes, has ({two.epsilon:g}, {two.delta:.3g})-DP"]


def _unit(row: dict[str, Any]) -> str:
    line = f"  unit {row['unit']}: {row['rounds']} rounds, {row['holders_90']:,} holders for probability 0.9"
    if row["first_sums"] is None:
        return line
    later = f"{row['later_sums']:,} for each of at most {row['most_prefixes']:,} prefixes later"
    return f"{line}; {row['first_sums']:,} sums at first, {later}"
