"""What the report draws of how sessions go: beginnings, transitions, lengths and paths, each with its interval."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from voxpop.sequences.context_tree import ContextTree
from voxpop.showing import printable

if TYPE_CHECKING:
    import polars as pl

    from voxpop.sequences.model import SequenceModel

LEVEL = 0.9
MOST_COUNTS = 50_000
"""Released counts beyond which asking would take longer than releasing did: nothing is drawn then."""
MOST_BARS = 12
MOST_ROWS = 20
MOST_LENGTHS = 40
PATH_LENGTH = 3
LONGEST_NAME = 24
STEPS = 10
"""Shades of the table of transitions."""


def pictures_of(model: "SequenceModel", end: str) -> dict[str, Any]:
    """Return what there is to draw: the answers of a model of contexts. A model of grams has none with intervals.

    Args:
        model: whose own answers these are, so that page and `voxpop ask` say the same.
        end: how the page writes the end of a sequence.

    Returns:
        Rows of `starts`, `lengths` and `paths`, each with share, low and high; `transitions`, a table of cells; the
        level of the intervals, and how many symbols the longest context has. Empty for a model of grams or of very many
        counts.
    """
    if not isinstance(model.tree, ContextTree) or model.tree.counts.size > MOST_COUNTS:
        return {}
    starts = model.starting(LEVEL)
    return {
        "level": LEVEL,
        "memory": max(int((model.tree.contexts >= 0).sum(axis=1).max(initial=0)), 1),
        "starts": _bars(starts.head(MOST_BARS), (_named([each]) for each in starts["symbol"])),
        "lengths": _lengths(model),
        "paths": _paths(model),
        "transitions": _transitions(model, end),
    }


def _bars(table: "pl.DataFrame", names: Iterable[str]) -> list[dict[str, Any]]:
    """Return rows to draw: a name that is shown once, a share, and what it may be."""
    numbers = table.select("share", "low", "high").rows()
    found = zip(names, numbers, strict=False)
    return [{"name": name, **_share(*row)} for name, row in found if row[0] > 0]


def _lengths(model: "SequenceModel") -> list[dict[str, Any]]:
    table = model.lengths(LEVEL).head(MOST_LENGTHS)
    last = model.max_length
    names = (f"{length}+" if length == last else str(length) for length in table["length"])
    return [
        {"name": name, **_share(*row)}
        for name, row in zip(names, table.select("share", "low", "high").rows(), strict=True)
    ]


def _paths(model: "SequenceModel") -> list[dict[str, Any]]:
    length = min(PATH_LENGTH, model.max_length)
    if (len(model.alphabet) + 1) ** length > 2**40:
        return []
    table = model.paths(length, MOST_BARS, LEVEL)
    return _bars(table, (_named(path, " → ") for path in table["path"]))


def _transitions(model: "SequenceModel", end: str) -> dict[str, Any]:
    """Return the table of what follows the commonest symbols; those that are no row of it are one column together."""
    asking = model._asking
    rows = asking.commonest(MOST_ROWS)
    names = [_named([model.alphabet[symbol]]) for symbol in rows]
    others = len(rows) < len(model.alphabet)
    share, low, high = asking.transitions_among(rows, LEVEL)
    kept = [*range(len(rows)), *([len(rows)] if others else []), len(rows) + 1]
    return {
        "columns": [*names, *(["others"] if others else []), end],
        "rows": [
            {"name": name, "cells": [_cell(share[row, at], low[row, at], high[row, at]) for at in kept]}
            for row, name in enumerate(names)
        ],
    }


def _cell(share: float, low: float, high: float) -> dict[str, Any]:
    """Return a cell: percent as text, what it may be, and how dark it is; by the root, so that small ones differ."""
    return {
        "text": f"{100 * share:.0f}" if share >= 0.005 else "",
        "may": f"{100 * low:.1f} to {100 * high:.1f} %",
        "shade": round(STEPS * float(np.sqrt(share))),
    }


def _share(share: float, low: float, high: float) -> dict[str, float]:
    return {"share": round(share, 5), "low": round(low, 5), "high": round(high, 5)}


def _named(symbols: Iterable[str], between: str = " ") -> str:
    """Return symbols as they can be seen, none so long that it takes the place of the bars."""
    shown = [printable((symbol,)) for symbol in symbols]
    return between.join(name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…" for name in shown)
