"""A base class for numbers that are written to JSON and read back. The fields must match exactly."""

from dataclasses import fields
from fractions import Fraction
from functools import cache
from math import isfinite
from types import UnionType
from typing import Any, Literal, Self, Union, get_args, get_origin, get_type_hints

from voxpop.errors import InternalError


class Stated:
    """A base class for numbers that are written to a dictionary and read back. The fields must match exactly."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers that are not None, ready for JSON."""
        pairs = ((each.name, _plain(getattr(self, each.name))) for each in fields(self))  # type: ignore[arg-type]
        return {name: value for name, value in pairs if value is not None}

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """Return the object from the dictionary that `to_dict` returned.

        Raises:
            InternalError: A field is missing, unknown or of the wrong type.
        """
        kinds = _kinds(cls)  # type: ignore[arg-type]
        if not isinstance(values, dict) or not values.keys() <= kinds.keys():
            raise malformed()
        return cls(**{name: _typed(kind, values.get(name)) for name, kind in kinds.items()})


def malformed() -> InternalError:
    """Build the error for a certificate that does not have the fields of its schema."""
    return InternalError("a certificate has fields or numbers that its schema does not allow")


@cache
def _kinds(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {each.name: hints[each.name] for each in fields(cls)}


def _plain(value: Any) -> Any:
    if isinstance(value, Stated):
        return value.to_dict()
    if isinstance(value, tuple):
        # Caps contain thousands of numbers. A function call for each number would take too long.
        return [each if type(each) in (int, float) else _plain(each) for each in value]
    return str(value) if isinstance(value, Fraction) else value


def _typed(kind: Any, value: Any) -> Any:
    """Convert a JSON value to a type of the schema."""
    origin, given = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return None if value is None else _typed(given[0], value)
    if origin is tuple and isinstance(value, list):
        if given[0] is int and all(type(each) is int for each in value):
            return tuple(value)
        return tuple(_typed(given[0], each) for each in value)
    if origin is Literal and value in given:
        return value
    if isinstance(kind, type) and issubclass(kind, Stated):
        return kind.from_dict(value)
    if kind is Fraction and isinstance(value, str):
        return _fraction(value)
    # A boolean is not accepted as a number, and an integer is not accepted as a double.
    if type(value) is kind and kind in (int, str, float, bool) and (kind is not float or isfinite(value)):
        return value
    raise malformed()


def _fraction(text: str) -> Fraction:
    above, _, below = text.partition("/")
    if not (above.isdecimal() and (below.isdecimal() or "/" not in text)) or below == "0":
        raise malformed()
    return Fraction(int(above), int(below or 1))
