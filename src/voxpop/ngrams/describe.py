"""A plan in words and small tables."""

from collections.abc import Sequence
from typing import Any

from voxpop.tables import table


def describe(plan: dict[str, Any], guarantee: str) -> str:
    """Return the text of a plan from its public numbers."""
    lines = [
        f"Phrases of 1 to {plan['max_length']} tokens, {_limits(plan['limit'])} a user and length, "
        f"{plan['weighting']} weighting, gaussian noise, {_pruning(plan)}",
        f"{guarantee}; {plan['accounting']} accounting, budgets {_budgets(plan)}",
        "",
        *table(_planned(plan["lengths"])),
        "",
        "threshold: the lower number holds for few candidates, the higher one for many",
        "users for 50 % and 90 %: how many must hold a phrase for that chance of release, once its parts are released;",
        "they hold 10 phrases of that length each, none held by more people, and 10 candidates compete for each place",
    ]
    if plan.get("round_plans"):
        lines.append(f"length 1 comes in {len(plan['round_plans'])} adaptive rounds; its numbers are those of the last")
    if plan["max_length"] > 1:
        lines += _about_spurious(plan)
    if plan.get("thresholds") == "votes":
        lines.append("thresholds may come out lower once votes are in, and then fewer users are enough")
    if plan.get("spending") == "individual":
        lines += [
            "every user pays from a budget of its own, only at lengths where it holds a candidate; sigma is that of a",
            "user who pays the price; in the end what came close is voted on with what each user has left",
        ]
    elif plan["budgets"] == "auto":
        lines.append("later lengths get more or less of the budget by what was released; the guarantee is fixed")
    if plan["ran"]:
        lines += ["", "What ran", *table(_ran(plan["ran"], plan.get("swept") or {}))]
    if plan.get("swept"):
        lines.append(_swept(plan["swept"]))
    return "\n".join(lines)


def _about_spurious(plan: dict[str, Any]) -> list[str]:
    """Say what the last column bounds."""
    whole = ""
    if plan.get("spending") == "individual":
        whole = f"; all together, with the last vote, at most {100 * plan['eta']:.3g} % of all"
    return [
        "spurious: grams held by nobody that are allowed, on average at most, of all released so far or of those one",
        f"token shorter{whole}; the share at one length may be greater",
    ]


def _limits(limit: Any) -> str:
    return f"at most {limit:,}" if isinstance(limit, int) else "at most " + ", ".join(f"{each:,}" for each in limit)


def _pruning(plan: dict[str, Any]) -> str:
    sides = f"{plan['pruning']}-side pruning"
    return f"{sides}, {'guided' if plan['guide'] else 'unguided'}"


def _budgets(plan: dict[str, Any]) -> str:
    if plan.get("values"):
        return f"{plan['budgets']}, a phrase worth {_numbers(plan['values'])} by length"
    return _numbers(plan["budgets"]) if isinstance(plan["budgets"], list) else str(plan["budgets"])


def _numbers(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:g}" for number in numbers)


def _planned(lengths: Sequence[dict[str, Any]]) -> list[list[str]]:
    rows = [["length", "sigma", "measured with", "threshold", "users for 50 %", "for 90 %", "spurious"]]
    for each in lengths:
        low, high = each["lowest_threshold"], each["highest_threshold"]
        span = f"{low:.5g}" if low == high else f"{low:.4g} to {high:.4g}"
        users = [_users(each["users_50"]), _users(each["users_90"])]
        noise = [f"{each['sigma']:.5g}", _number(each["measurement_sigma"])]
        rows.append([str(each["length"]), *noise, span, *users, _allowed(each["spurious"])])
    return rows


def _allowed(rule: dict[str, Any] | None) -> str:
    return "-" if rule is None else f"{100 * rule['share']:.3g} % of {rule['of']}"


def _ran(runs: Sequence[dict[str, Any]], swept: dict[str, Any]) -> list[list[str]]:
    rows = [["length", "sigma", "measured with", "wide vote", "candidates", "threshold", "spurious"]]
    more = [0.0, *swept.get("spurious", ()), *[0.0] * len(runs)]
    for each, further in zip(runs, more, strict=False):
        candidates = "-" if each["candidates"] is None else f"{each['candidates']:,}"
        looks = [_number(each["measurement_sigma"]), _number(each.get("prevote_sigma"))]
        spurious = "-" if each.get("spurious") is None else f"{each['spurious'] + further:.3g}"
        numbers = [f"{each['sigma']:.5g}", *looks, candidates, f"{each['threshold']:.5g}", spurious]
        rows.append([str(each["length"]), *numbers])
    return rows


def _swept(swept: dict[str, Any]) -> str:
    """Say what the last vote came to."""
    return (
        f"of {swept['candidates']:,} that came close {sum(swept['released']):,} were released by a last vote, "
        f"with sigma {swept['sigma']:.5g}"
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.5g}"


def _users(value: int | None) -> str:
    return "never" if value is None else f"{value:,}"
