"""Checks of public arguments: what was wanted, what came, what it means."""

from collections.abc import Sequence
from math import isfinite

from voxpop.errors import InputError
from voxpop.privacy.budget import Budget

LARGEST_LIMIT = 10**7
"""The most items or grams of one user that any mechanism takes."""


def check_whole(name: str, value: object, most: int, meaning: str, least: int = 1) -> None:
    """Refuse what is not a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"`{name}` must be a whole number from {least:,} to {most:,}, got {value!r}. It is {meaning}.")


def check_within(name: str, value: object, least: float, most: float, meaning: str) -> None:
    """Refuse what is not a finite number from `least` to `most`."""
    if not is_real(value) or not least <= value <= most:  # type: ignore[operator]
        raise InputError(f"`{name}` must be a number from {least:g} to {most:g}, got {value!r}. It is {meaning}.")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse what is not one of a few words."""
    if value not in choices:
        listed = " or ".join(f'"{choice}"' for choice in choices)
        raise InputError(f"`{name}` must be {listed}, got {value!r}.")


def check_budget(budget: object) -> None:
    """Refuse what is not a budget."""
    if not isinstance(budget, Budget):
        raise InputError(
            f"`budget` must be a voxpop.Budget, such as voxpop.Budget(epsilon=4, delta=1e-7), got a value of type "
            f"{type(budget).__name__}."
        )


def is_real(value: object) -> bool:
    """Say whether a value is a finite number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
