"""A plan in words and small tables."""

from typing import Any

from voxpop.tables import table


def describe(plan: dict[str, Any], guarantee: str) -> str:
    """Return the text of a plan from its public numbers."""
    lines = [
        f"Set union of at most {plan['limit']:,} items a user, {plan['weighting']} weighting, {_noise(plan)}",
        f"{guarantee}; {plan['accounting']} accounting",
        "",
        *table(_round_rows(plan)),
        "",
        *users_table(plan),
        missing_line(plan),
        *promise_lines(plan),
    ]
    return "\n".join(lines)


def missing_line(plan: dict[str, Any]) -> str:
    """Return what becomes of common items, as a line."""
    share = plan["missing"]
    chance = "less than once in a million" if share < 1e-6 else f"with probability {share:.2g}"
    return f"An item that ten times as many users hold as it needs is missing {chance}"


def users_table(plan: dict[str, Any]) -> list[str]:
    """Return how many users an item needs, as lines."""
    return [
        "Users who must hold an item for it to be released with probability",
        *table(_user_rows(plan)),
        "(each row is for users who hold so many items each, none of them held by more people)",
    ]


def promise_lines(plan: dict[str, Any]) -> list[str]:
    """Return what is promised about items of few users, as lines of a plan."""
    if "at_least" not in plan:
        return []
    rows = (plan["users_needed"], plan["users_needed_without_promise"])
    needed, before = ({row["items"]: row["users"] for row in each if row["probability"] == 0.5} for each in rows)
    counts = [f"{_users(needed[items])} instead of {_users(before[items])}" for items in needed]
    return [
        f"An item of fewer than {plan['at_least']:,} users is released with probability at most "
        f"{plan['released_with_few']:.2g}; to be released every other time items need",
        f"{', '.join(counts)} users (who hold {', '.join(f'{items:,}' for items in needed)} such items each)",
    ]


def _noise(plan: dict[str, Any]) -> str:
    noise = plan["round_plans"][-1]["noise"]
    if noise == "set-only":
        return "a table of probabilities"
    return "optimal selection by number of users" if noise == "optimal" else f"{noise} noise"


def _round_rows(plan: dict[str, Any]) -> list[list[str]]:
    rows = [["round", "sigma" if plan["noise"] == "gaussian" else "scale", "threshold", "cutoff"]]
    for number, each in enumerate(plan["round_plans"], start=1):
        if each["noise"] == "optimal":
            rows.append([str(number), "-", "-", "-"])
            continue
        if each["noise"] == "set-only":
            rows.append([str(number), "-", f"{each['threshold']:.6g}", "-"])
            continue
        cutoff = "-" if each["cutoff"] is None else f"{each['cutoff']:.5g}"
        rows.append([str(number), f"{each['scale']:.6g}", f"{each['threshold']:.6g}", cutoff])
    return rows


def _user_rows(plan: dict[str, Any]) -> list[list[str]]:
    needed = {(row["items"], row["probability"]): row["users"] for row in plan["users_needed"]}
    sizes = sorted({size for size, _ in needed})
    probabilities = sorted({probability for _, probability in needed})
    rows = [["items of each", *(f"{probability:g}" for probability in probabilities)]]
    for size in sizes:
        users = [needed[size, probability] for probability in probabilities]
        rows.append([f"{size:,}", *("never" if u is None else f"{u:,}" for u in users)])
    return rows


def _users(count: int | None) -> str:
    return "never" if count is None else f"{count:,}"
