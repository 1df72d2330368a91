"""A focused plan in words and small tables."""

from typing import Any

from voxpop.tables import table
from voxpop.union.describe import users_table


def describe(plan: dict[str, Any], guarantee: str) -> str:
    """Return the text of a plan from its public numbers."""
    rounds = len(plan["round_plans"])
    lines = [
        f"Set union of at most {plan['limit']:,} items a user, {plan['weighting']} weighting, {rounds} focused rounds",
        f"{guarantee}; thresholds and floors in standard deviations of the evidence",
        "",
        *table(_round_rows(plan)),
        "",
        *users_table(plan),
    ]
    return "\n".join(lines)


def _round_rows(plan: dict[str, Any]) -> list[list[str]]:
    opening, *later = plan["round_plans"]
    first = ["1", f"{opening['scale']:.6g}", f"{opening['threshold'] / opening['scale']:.4g}", "-", "-"]
    rows = [["round", "sigma", "threshold", "floor", "part"], first]
    for number, each in enumerate(later, start=2):
        floor = "-" if each["evidence_floor"] is None else f"{each['evidence_floor']:.4g}"
        part = f"{each['part'] / later[-1]['part']:.4g}"
        rows.append([str(number), f"{each['scale']:.6g}", f"{each['evidence_threshold']:.4g}", floor, part])
    return rows
