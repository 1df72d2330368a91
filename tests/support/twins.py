"""Plans that lie: what a broken twin or a search runs, and no user can."""

from dataclasses import replace

from voxpop.privacy.planned import sealed


def passed_off(plan, **changes):
    """Return a plan with other numbers, as if they had been held against its budget."""
    return sealed(replace(plan, **changes), 0.0)
