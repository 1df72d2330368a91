"""The text of a plan of heavy hitters, from its public numbers."""

from collections.abc import Mapping
from typing import Any

from voxpop.privacy.budget import Budget


def describe(plan: Mapping[str, Any], guarantee: str = "", two: Budget | None = None) -> str:
    """Return the text of a plan.

    Args:
        plan: the public numbers.
        guarantee: the guarantee in words.
        two: the budget of a person who counts as two users; None without one.
    """
    first, unit, symbols = plan["first_unit"], plan["unit"], plan["alphabet"]
    step = f"{first} {symbols} a round" if first > 1 else "one symbol a round"
    if first != unit and plan["rounds"] > 1:
        step = f"{first} {symbols} in the first round and {unit} in each later one"
    whose = "its most frequent word" if plan["words"] == "one" else "any of its words, drawn anew in each round"
    times = "once"
    if plan["again"]:
        times += f"; with chance {plan['again']:g} again, and then with chance {plan['further']:g} once more, and so on"
    theorem = f"rate and threshold by Theorem 1 of {plan['paper']}" if "paper" in plan else ""
    lines = [
        f"Heavy hitters of at most {plan['max_length']} {symbols}, the end mark counted,",
        step,
        *filter(None, ["; ".join(filter(None, [guarantee, theorem]))]),
        "",
        f"  {plan['rounds']} rounds at most; a user takes part in each with probability "
        f"{100 * plan['sampling_rate']:.4g} %",
        f"  a user votes for {whose}, {times}",
        f"  a prefix grows with {plan['theta']} votes or more",
    ]
    if two is not None:
        held = f"({two.epsilon:g}, {two.delta:.3g})-DP"
        lines.append(f"  a person who counts as two users, such as one on two nodes, has {held}")
    return "\n".join(
        [
            *lines,
            "",
            "Users who must vote for a word for it to be found with probability",
            *(f"  {row['probability']:g}: {row['users']:,}" for row in plan["users_needed"]),
            "(a word of full length that shares no prefix with others; most need fewer)",
        ]
    )
