"""The plan of a release that was loaded: its numbers, no longer able to run."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, final

from voxpop.showing import Printed


@final
@dataclass(frozen=True, slots=True, repr=False)
class StoredPlan(Printed):
    """The public numbers of the plan that made a release, as `release.json` holds them.

    Every number is an attribute too: `release.plan.sigma`.

    Attributes:
        numbers: what the plan's `to_dict` returned when the release was saved.

    Example:
        >>> plan = StoredPlan({"mechanism": "set union", "sigma": 1.2})
        >>> plan.sigma
        1.2
        >>> print(plan)
        mechanism: set union
        sigma: 1.2
    """

    numbers: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of the numbers, ready for JSON."""
        return deepcopy(dict(self.numbers))

    def __getattr__(self, name: str) -> Any:
        """Return one of the numbers by its name."""
        # Copying asks a bare instance for names such as `__setstate__` before `numbers` exists.
        if name == "numbers" or name.startswith("__") or name not in self.numbers:
            raise AttributeError(f"this stored plan has no {name!r}; `to_dict()` shows what it has")
        return deepcopy(self.numbers[name])

    def __str__(self) -> str:
        """Return one line per number."""
        return "\n".join(_lines(self.numbers))


def _lines(numbers: Mapping[str, Any]) -> Iterator[str]:
    for name, value in numbers.items():
        label = name.replace("_", " ")
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            yield f"{label}:"
            yield from (f"  {_row(row)}" for row in value)
        else:
            yield f"{label}: {_word(value)}"


def _row(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {_word(value)}" for name, value in row.items())


def _word(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else str(value)
