"""Numbers as the report writes them. What is a bound is never rounded to the wrong side."""

from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context
from math import ceil, exp, floor, log10
from typing import Any

LARGEST_EXPONENT = 700.0
MILLION = 1e6


def whole(number: Any) -> str:
    """Return a whole number with commas; "never" for None."""
    return "never" if number is None else f"{int(number):,}"


def plain(number: Any, digits: int = 5) -> str:
    """Return a number to so many significant digits, a dash for None."""
    if number is None:
        return "–"
    if isinstance(number, bool) or not isinstance(number, int | float):
        return str(number)
    if isinstance(number, int):
        return f"{number:,}"
    return f"{number:.{digits}g}"


def at_most(number: float, digits: int = 3) -> str:
    """Return a bound to so many significant digits, rounded up."""
    if number <= 0:
        return "0"
    if number == int(number) and number < 1e15:
        return f"{int(number):,}"
    if number >= 1000:
        return f"{ceil(number):,}"
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(number)
    exponent = floor(log10(number))
    return f"{float(rounded):,.{max(0, digits - 1 - exponent)}f}" if -4 <= exponent < 15 else f"{rounded:.{digits}g}"


def percent(share: float) -> str:
    """Return a share in per cent."""
    rounded = Context(prec=3, rounding=ROUND_HALF_EVEN).create_decimal_from_float(100 * share)
    return f"{float(rounded):g} %"


def factor(epsilon: float) -> str:
    """Return e^epsilon, rounded up; beyond a million as a power of ten, since nobody reads longer numbers."""
    grown = exp(min(epsilon, LARGEST_EXPONENT))
    if grown < MILLION:
        return at_most(grown)
    digits, power = f"{Context(prec=2, rounding=ROUND_CEILING).create_decimal_from_float(grown):.1e}".split("e")
    return f"{digits} × 10^{int(power)}"


def one_in(share: float) -> str:
    """Return a small share as "1 in 10,000,000" where it is one."""
    inverse = 1 / share if share > 0 else 0.0
    return f"1 in {round(inverse):,}" if inverse and abs(inverse - round(inverse)) < 1e-6 * inverse else f"{share:g}"
