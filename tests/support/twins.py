"""Plans that lie: what a broken twin or a search runs, and no user can."""

from dataclasses import replace

from voxpop.privacy.planned import sealed


def passed_off(plan, **changes):
    """Return a plan with other numbers, as if they had been held against its budget."""
    return sealed(replace(plan, **changes), 0.0)


def with_rounds(plan, **changes):
    """Return a plan whose adaptive rounds have other numbers, as if they had been held against its budget."""
    return passed_off(plan, planned=replace(plan.planned, **changes))
