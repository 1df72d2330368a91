"""The privacy budget, checks of public arguments, and the display of objects.

In notebooks and terminals, objects are displayed as escaped text and small tables.
"""

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite
from numbers import Real

from voxpop.errors import BudgetError, InputError, on_one_line

_EPSILON = "A value of at most 1 is strict, and values above 10 give hardly any protection"
_DELTA = (
    "Use a hundredth of one over the expected number of users or less, such as 1e-7; do not compute it from the data"
)
SUSPECT_DELTA = 1e-3
"""A larger delta causes a warning, because it permits the release of all data of one user in a thousand."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The maximum epsilon and delta that a release may spend. A delta above 0.001 causes a warning.

    Args:
        epsilon: The bound on how much one user changes the log-odds of any result, finite and more than 0.
        delta: The maximum probability of releasing an item that only one user has, at least 0 and less than 1. Items of
            a public list are an exception (docs/privacy/known.md).

    Raises:
        BudgetError: A value is not a number or is out of range.

    Example:
        >>> Budget(epsilon=4, delta=1e-7)
        Budget(epsilon=4.0, delta=1e-07)
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        epsilon, delta = _real("epsilon", self.epsilon), _real("delta", self.delta)
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise BudgetError(f"`epsilon` must be finite and more than 0, got {self.epsilon}. {_EPSILON}.")
        if not 0 <= delta < 1:
            raise BudgetError(f"`delta` must be at least 0 and less than 1, got {self.delta}. {_DELTA}.")
        object.__setattr__(self, "epsilon", epsilon)
        if delta > SUSPECT_DELTA:
            warnings.warn(
                f"`delta` {delta:g} is large: an item of one user may be released with this probability. {_DELTA}.",
                stacklevel=3,
            )
        object.__setattr__(self, "delta", delta)


def budget_numbers(budget: Budget, spent: float) -> dict[str, float]:
    """Return the numbers of a budget for the record of a plan, with the delta that the plan spends at this epsilon."""
    return {"epsilon": budget.epsilon, "delta": budget.delta, "delta_spent": spent}


def _real(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise BudgetError(f"`{name}` must be a number, got a value of type {type(value).__name__}.")
    return float(value)


def too_large(epsilon: float) -> BudgetError:
    """Return the error for an epsilon that is not feasible with any delta below 1."""
    return BudgetError(f"epsilon {epsilon:g} is too large, because it would need a delta of 1. {_EPSILON}.")


def check_slack(what: str, budget: Budget, slack: float) -> None:
    """Raise an error if finite arithmetic costs at least half of delta.

    Args:
        what: The first words of the message, which are a subject and a verb, such as "n-grams need".
        budget: The budget.
        slack: The cost of finite arithmetic in delta.

    Raises:
        BudgetError: Delta is too small, or epsilon is too large.
    """
    least = 2 * slack
    if least >= 1.0:
        raise too_large(budget.epsilon)
    if budget.delta <= least:
        raise BudgetError(
            f"{what} a delta of at least {least:.2g} at epsilon {budget.epsilon:g}, got {budget.delta:g}. Choose it "
            "far below 1 / (number of users you expect), such as 1e-7; it must not be computed from the data."
        )


LARGEST_LIMIT = 10**7
"""The largest contribution bound of any mechanism, in items or grams per user."""


def check_whole(name: str, value: object, most: int, meaning: str, least: int = 1) -> None:
    """Raise an error unless a value is an integer between `least` and `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"`{name}` must be a whole number from {least:,} to {most:,}, got {value!r}. It is {meaning}.")


def check_within(name: str, value: object, least: float, most: float, meaning: str) -> None:
    """Raise an error unless a value is a finite number between `least` and `most`."""
    if not is_real(value) or not least <= value <= most:  # type: ignore[operator]
        raise InputError(f"`{name}` must be a number from {least:g} to {most:g}, got {value!r}. It is {meaning}.")


def check_probability(probability: float) -> None:
    """Raise an error unless a probability is strictly between 0 and 1."""
    if not 0.0 < probability < 1.0:
        raise InputError(f"`probability` must lie strictly between 0 and 1, got {probability!r}.")


def check_choice(name: str, value: object, choices: Sequence[str | int]) -> None:
    """Raise an error unless a value is one of the choices."""
    if value not in choices:
        listed = " or ".join(f'"{choice}"' if isinstance(choice, str) else str(choice) for choice in choices)
        raise InputError(f"`{name}` must be {listed}, got {value!r}.")


def check_budget(budget: object) -> None:
    """Raise an error unless a value is a budget."""
    if not isinstance(budget, Budget):
        raise InputError(
            f"`budget` must be a voxpop.Budget, such as voxpop.Budget(epsilon=4, delta=1e-7), got a value of type "
            f"{type(budget).__name__}."
        )


def is_real(value: object) -> bool:
    """Return whether a value is a finite number, and not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


BOX = "border:1px solid rgba(128,128,128,.4);border-radius:8px;padding:.7em 1em;max-width:100%;overflow-x:auto"
SOFT = "opacity:.75;margin-top:.35em"
SAMPLE_SIZE = 12
"""The maximum number of rows or words of a result that a box shows."""
CAREFUL = "border-left:4px solid #d9822b;padding-left:.7em;margin-top:.5em"


class Printed:
    """A base class for objects that notebooks and terminals display with the text that `print` shows."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the text that `print` shows."""
        return str(self)

    def _repr_html_(self) -> str:
        """Return HTML for a notebook, with the text that `print` shows and scroll bars for wide tables."""
        return f'<pre style="overflow-x:auto;white-space:pre;font-family:monospace">{escape(str(self))}</pre>'


def card(
    title: str,
    lines: Sequence[str] = (),
    head: Sequence[str] = (),
    rows: Iterable[Sequence[str]] = (),
    warned: Sequence[str] = (),
) -> str:
    """Return a box for a notebook, with every text escaped.

    Args:
        title: The bold title.
        lines: The lines below the title.
        head: The column names of the table, or an empty sequence if there is no table.
        rows: The rows of the table.
        warned: The warnings, which are highlighted.
    """
    parts = [f"<b>{escape(title)}</b>"]
    parts += [f'<div style="{SOFT}">{escape(line)}</div>' for line in lines]
    parts += [f'<div style="{CAREFUL}">{escape(line)}</div>' for line in warned]
    if head:
        cells = "".join(f"<th>{escape(each)}</th>" for each in head)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        parts.append(f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>")
    return f'<div style="{BOX}">{"".join(parts)}</div>'


def printable(gram: Iterable[str], *, marked: bool = False) -> str:
    """Return a gram with terminal control characters escaped and blank tokens in quotes.

    In a gram of several tokens, tokens with spaces are also quoted, so that their boundaries are visible. A single
    token with spaces is quoted only if `marked`.

    Example:
        >>> print(printable(("new york", "city")), printable(("new", "york")), printable(("new york",)), sep=", ")
        "new york" city, new york, new york
    """
    tokens = list(gram)
    return " ".join(_token(token, marked=marked or len(tokens) > 1) for token in tokens)


def _token(token: str, *, marked: bool) -> str:
    if not token.strip():
        return repr(token)
    text = on_one_line(token)
    spaced = marked and (token.startswith('"') or any(map(str.isspace, token)))
    return '"' + text.replace('"', r"\"") + '"' if spaced else text


def all_printable(grams: Iterable[Sequence[str]]) -> list[str]:
    """Format grams with `printable`. If any gram has several tokens, the boundaries of all tokens are visible."""
    every = list(grams)
    several = any(len(gram) > 1 for gram in every)
    return [printable(gram, marked=several) for gram in every]


def words_first(grams: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the grams that begin with a letter, then the grams that begin with a digit, and then all other grams."""
    return sorted(grams, key=lambda gram: 0 if gram[0][:1].isalpha() else 1 if gram[0][:1].isalnum() else 2)


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines with right-aligned columns."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
