"""The text, charts and report of a model of sequences, from the numbers of its plan and the answers of the model."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from voxpop.kernels.threads import require_polars
from voxpop.privacy.budget import printable
from voxpop.release.report.numbers import plain, rows_of_type, whole
from voxpop.release.report.page import Grid, Story, page_of
from voxpop.release.table import table_of_lists

if TYPE_CHECKING:
    import polars as pl

    from voxpop.mechanisms.sequences.model import SequenceModel

END = "⟨end⟩"
_LEVEL = 0.9
MOST_COUNTS = 50_000
"""The maximum number of released counts for charts. With more counts, queries would take longer than the release."""
MOST_BARS = 12
MOST_ROWS = 20
MOST_LENGTHS = 40
PATH_LENGTH = 3
LONGEST_NAME = 24
_STEPS = 10
"""The number of shades in the table of transitions."""

Row = tuple[list[str], int, float]
"""A gram, its estimated count, and the scale of the noise on its released counts."""


def describe(plan: Mapping[str, Any], guarantee: str = "") -> str:
    """Return the text of a plan from its public numbers."""
    symbols = "an alphabet that is found first"
    if plan["alphabet_size"] is not None:
        symbols = f"an alphabet of {plan['alphabet_size']:,} symbols"
    rows = {row["pass"]: row for row in plan["passes"]}
    lengths, levels = rows["lengths"], rows["level"]
    longest = f"at most {levels['sensitivity']:,} symbols"
    if plan["max_length"] is None:
        longest += " (more if a fifth of the users have more)"
    lines = [
        f"Sequences of {longest} from {symbols}; one sequence per user, drawn at random",
        f"{guarantee}; integer Laplace noise" if guarantee else "integer Laplace noise",
    ]
    if finding := rows.get("finding"):
        lines.append(f"finding the alphabet: epsilon {finding['epsilon']:.6g}, delta {finding['delta']:.6g} (items)")
        lines.append(f"counting: epsilon {plan['epsilon_to_count']:.6g}")
    lines.append(f"number of sequences by length: noise scale {lengths['scale']:.6g}")
    deciding = "the number of steps counted from the start of each sequence (few if most sequences are short)"
    if plan["max_length"] is None:
        deciding = f"the maximum length of drawn sequences, and {deciding}"
    lines.append(f"these numbers determine {deciding}")
    single = f"counts of single symbols: noise scale {levels['scale']:.6g} or less"
    if plan["max_length"] is None:
        single += f" for up to {levels['sensitivity']} counted steps (in proportion to their number if they are more)"
    if levels["threshold"] is not None:
        single += f"; a symbol is a separate context from about {levels['threshold']:.6g} occurrences"
    lines.append(single)
    if levels["levels"] > 1:
        lines.append(f"longer contexts, for grams of up to {levels['levels']}: the rest of epsilon")
    return "\n".join(lines)


def report_of_model(model: "SequenceModel", checksums: Mapping[str, str]) -> bytes:
    """Return the report page of a model. Equal models give equal bytes.

    Args:
        model: The model that the reader of the page has to approve.
        checksums: The checksums of the files that are saved with the page.
    """
    end = _end_mark(set(model.alphabet))
    rows = rows_of_model(model, end)
    sizes, noise = _released(model)
    grams = table_of_lists([gram for gram, *_ in rows])
    counts = np.array([count for _, count, _ in rows], np.int64)
    plan = model.plan.to_dict()
    finding = rows_of_type(plan, "finding")
    story = Story(
        words="sequences.html",
        noun=("noisy count", "noisy counts"),
        title="of what follows what",
        kicker="A model of sequences",
        proof="docs/privacy/sequences.md",
        values={
            "max_length": model.max_length,
            "counted": model.counted_steps,
            "alphabet_size": plan.get("alphabet_size"),
            "scale": plain(float(model.tree.scales[0])),
            "end": end,
            "found": plain(finding[0]["epsilon"]) if finding else "",
        },
        sessions=charts_of(model, end),
        grids=[noise],
        completes=False,
    )
    return page_of(story, model, sizes, grams, "sequence", counts, checksums)


def rows_of_model(model: "SequenceModel", end: str) -> list[Row]:
    """Return the grams in canonical order with their smoothed counts.

    A gram is included only if all its beginnings have a count.
    """
    import polars as pl

    require_polars()
    frame = model.to_polars().filter(~pl.col("begins") & ~pl.col("others"))
    rows: dict[tuple[str, ...], tuple[int, float]] = {}
    for gram, ends, estimate, scale in frame.select("gram", "ends", "estimate", "scale").iter_rows():
        context = tuple(gram if ends else gram[:-1])
        # No sequence is empty, so the end never follows the empty context.
        if round(estimate) > 0 and (context in rows if context else not ends):
            rows[*context, end if ends else gram[-1]] = (round(estimate), scale)
    found = [([*gram], count, scale) for gram, (count, scale) in rows.items()]
    return sorted(found, key=lambda row: (len(row[0]), [token.encode() for token in row[0]]))


def _released(model: "SequenceModel") -> tuple[dict[int, int], Grid]:
    """Return the number of released counts by gram length, and a table of their noise."""
    import polars as pl

    require_polars()
    length = pl.col("gram").list.len() + pl.col("ends").cast(pl.UInt32)
    low, high = pl.col("scale").min().alias("low"), pl.col("scale").max().alias("high")
    found = model.to_polars().group_by(length.alias("length")).agg(pl.len(), low, high).sort("length").rows()
    grid = Grid(
        "Noise on the counts",
        ["length of gram", "counts", "smallest scale", "largest scale"],
        [[str(length), whole(count), plain(least), plain(most)] for length, count, least, most in found],
        "Integer Laplace noise of scale b has a standard deviation of about 1.4 b. Longer contexts are counted with "
        "the rest of epsilon.",
    )
    return {length: count for length, count, *_ in found}, grid


def _end_mark(symbols: set[str]) -> str:
    """Return a spelling for the end that differs from every symbol."""
    mark = END
    while mark in symbols:
        mark = f"⟨{mark}⟩"
    return mark


def charts_of(model: "SequenceModel", end: str) -> dict[str, Any]:
    """Return the data of the charts, which are answers of the model with intervals.

    Args:
        model: The model. The charts show the answers that the methods of the model and `voxpop ask` return.
        end: The spelling of the end of a sequence.

    Returns:
        A dictionary with the rows of `starts`, `lengths` and `paths`, each with share, low and high; `transitions`, a
        table of cells; the level of the intervals; the number of symbols in the longest context; and whether only
        single symbols were counted. The result is empty if there are more than `MOST_COUNTS` counts.
    """
    import polars as pl

    require_polars()
    if model.tree.counts.size > MOST_COUNTS:
        return {}
    last, length = model.max_length, min(PATH_LENGTH, model.max_length)
    held = pl.col("share") > 0
    paths: list[dict[str, Any]] = []
    if (len(model.alphabet) + 1) ** length <= 2**40:
        runs = model.paths(length, MOST_BARS, _LEVEL).filter(held)
        paths = _bars(runs, "path", lambda path: _named(path, " → "))
    return {
        "level": _LEVEL,
        "memory": max(int((model.tree.contexts >= 0).sum(axis=1).max(initial=0)), 1),
        "alone": model.tree.nodes == 1,
        "starts": _bars(model.starting(_LEVEL).head(MOST_BARS).filter(held), "symbol", lambda symbol: _named([symbol])),
        "lengths": _bars(
            model.lengths(_LEVEL).head(MOST_LENGTHS), "length", lambda size: f"{size}+" if size == last else str(size)
        ),
        "paths": paths,
        "transitions": _transitions(model, end),
    }


def _bars(table: "pl.DataFrame", column: str, name_of: Callable[[Any], str]) -> list[dict[str, Any]]:
    """Return the rows of a chart, each with a name, a share, and the interval of the share."""
    return [
        {"name": name_of(row[column]), **{name: round(row[name], 5) for name in ("share", "low", "high")}}
        for row in table.iter_rows(named=True)
    ]


def _transitions(model: "SequenceModel", end: str) -> dict[str, Any]:
    """Return the table of the followers of the most frequent symbols. All symbols without a row share one column."""
    queries = model._queries
    counts = np.bincount(queries.sessions.symbols, minlength=len(model.alphabet))
    rows = np.argsort(-counts, kind="stable")[:MOST_ROWS].tolist()
    names = [_named([model.alphabet[symbol]]) for symbol in rows]
    others = len(rows) < len(model.alphabet)
    share, low, high = queries.transitions_among(rows, _LEVEL)
    kept = [*range(len(rows)), *([len(rows)] if others else []), len(rows) + 1]
    return {
        "columns": [*names, *(["others"] if others else []), end],
        "rows": [
            {"name": name, "cells": [_cell(share[row, at], low[row, at], high[row, at]) for at in kept]}
            for row, name in enumerate(names)
        ],
    }


def _cell(share: float, low: float, high: float) -> dict[str, Any]:
    """Return a cell with a percentage as text, its interval, and its shade.

    The shade is proportional to the square root of the share, so that small shares have different shades.
    """
    return {
        "text": f"{100 * share:.0f}" if share >= 0.005 else "",
        "may": f"{100 * low:.1f} to {100 * high:.1f} %",
        "shade": round(_STEPS * float(np.sqrt(share))),
    }


def _named(symbols: Iterable[str], between: str = " ") -> str:
    """Return symbols as printable text, each cut to `LONGEST_NAME` characters."""
    shown = [printable((symbol,)) for symbol in symbols]
    return between.join(name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…" for name in shown)
