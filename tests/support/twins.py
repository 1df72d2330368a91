"""Plans with false guarantees, which library users cannot create, for deliberately broken variants and searches."""

from dataclasses import replace

from voxpop.testing.cases import unchecked


def passed_off(plan, **changes):
    """Return a plan with changed values, marked as if the values had been checked against its budget."""
    return unchecked(replace(plan, **changes))


def with_rounds(plan, **changes):
    """Return a plan with changed values in its adaptive rounds, which is marked as checked against its budget."""
    return passed_off(plan, passes=(replace(plan.passes[0], **changes),))
