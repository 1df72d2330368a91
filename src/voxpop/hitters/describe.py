"""A plan in words and a small table."""

from typing import Any

_SYMBOLS = {"characters": "characters", "bytes": "bytes", "tokens": "tokens"}


def describe(plan: dict[str, Any], guarantee: str) -> str:
    """Return the text of a plan from its public numbers."""
    whose = "its most frequent word" if plan["words"] == "one" else "any of its words, drawn anew in each round"
    chance = f"{100 * plan['sampling_rate']:.4g} %"
    asked = f"each with probability {chance}" if plan["sampling"] == "bernoulli" else f"a batch of {chance} of them"
    step = f"{plan['unit']} {_SYMBOLS[plan['alphabet']]} a round" if plan["unit"] > 1 else "one symbol a round"
    lines = [
        f"Heavy hitters of at most {plan['max_length']} {_SYMBOLS[plan['alphabet']]}, the end mark counted, {step}",
        f"{guarantee}; {plan['accounting']} accounting",
        "",
        f"  {plan['rounds']} rounds at most; in each, users are asked, {asked}",
        f"  a user votes once, for {whose}",
        f"  a prefix grows with {plan['theta']} votes or more",
        "",
        "Users who must vote for a word for it to be found with probability",
        *(f"  {row['probability']:g}: {row['holders']:,}" for row in plan["holders_needed"]),
        "(a word of full length that shares no prefix with others; most need fewer)",
    ]
    return "\n".join(lines)
