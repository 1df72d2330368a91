"""Plans that lie: what a broken twin or a search runs, and no user can."""

from dataclasses import replace


def passed_off(plan, **changes):
    """Return a plan with other numbers, as if they had been held against its budget."""
    return replace(plan, **changes).checked(0.0)
