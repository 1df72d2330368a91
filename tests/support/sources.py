"""Every form of every source of the registry, made from rows; and what the rows of one user must not change."""

import json
import sqlite3
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import polars as pl
import pyarrow as pa

import voxpop as vp
from support.look import read_engine
from voxpop.errors import ColumnError, SourceError

NAMES = ("who", "what", "at")
Row = tuple[Any, Any, Any]


class Form(NamedTuple):
    """A form of a source.

    Attributes:
        make: returns the source, from rows and a folder.
        declared: whether it declares types, so that only whole numbers fit.
        holds: returns whether a form can hold a value at all.
    """

    make: Callable[[list[Row], Path], Any]
    declared: bool = False
    holds: Callable[[Any], bool] = lambda _: True


class Streamed:
    """An object of which nothing is known but an interface of Arrow."""

    def __init__(self, held: Any, name: str) -> None:
        setattr(self, name, getattr(held, name))


def table(rows: list[Row]) -> pa.Table:
    """Return rows as a table whose schema declares 64-bit integers."""
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table({name: pa.array(list(each), pa.int64()) for name, each in zip(NAMES, columns, strict=True)})


def as_columns(rows: list[Row]) -> dict[str, list[Any]]:
    """Return rows as lists of values."""
    return {name: [row[place] for row in rows] for place, name in enumerate(NAMES)}


def dictionaries(rows: list[Row]) -> list[dict[str, Any]]:
    """Return rows as dictionaries."""
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


def parquet(rows: list[Row], folder: Path) -> Path:
    """Write two files of Parquet into a folder."""
    (folder / "parquet").mkdir(exist_ok=True)
    whole = pl.DataFrame(table(rows))
    for number, part in enumerate((whole[: len(rows) // 2], whole[len(rows) // 2 :])):
        part.write_parquet(folder / "parquet" / f"{number}.parquet")
    return folder / "parquet"


def csv(rows: list[Row], folder: Path) -> Path:
    """Write CSV."""
    cells = [",".join("" if each is None else f'"{each}"' for each in row) for row in rows]
    (folder / "rows.csv").write_text("\n".join([",".join(NAMES), *cells]) + "\n")
    return folder / "rows.csv"


def json_lines(rows: list[Row], folder: Path) -> Path:
    """Write JSON lines."""
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, dictionaries(rows))) + "\n")
    return folder / "rows.jsonl"


def connection(rows: list[Row], _: Path) -> sqlite3.Connection:
    """Return a database whose values are of Python's own types, decimals among them."""
    opened = sqlite3.connect(":memory:")
    opened.execute("create table rows (who, what, at)")
    marked = [tuple(f"d{each}" if isinstance(each, Decimal) else each for each in row) for row in rows]
    opened.executemany("insert into rows values (?, ?, ?)", marked)
    return opened


class Cursor:
    """A cursor of Python's DB-API that returns some values as decimals, as drivers do for NUMERIC."""

    description = tuple((name, None, None, None, None, None, None) for name in NAMES)

    def __init__(self, rows: list[Row]) -> None:
        self._rows = iter(rows)

    def fetchmany(self, size: int) -> list[Row]:
        """Return the next rows."""
        return [row for row, _ in zip(self._rows, range(size), strict=False)]


def plain(value: Any) -> bool:
    """Return whether SQLite holds a value by itself."""
    whole = type(value) is int and abs(value) < 2**63  # it has no truth values
    return value is None or isinstance(value, str | float) or whole


def in_json(value: Any) -> bool:
    """Return whether JSON holds a value by itself."""
    return not isinstance(value, Decimal)


FORMS: dict[str, dict[str, Form]] = {
    "files": {
        "parquet": Form(parquet, declared=True),
        "csv": Form(csv),
        "json lines": Form(json_lines, holds=in_json),
    },
    "query": {"sqlite": Form(lambda rows, to: vp.SQL("select * from rows", connection(rows, to)), holds=plain)},
    "polars": {
        "frame": Form(lambda rows, _: pl.DataFrame(table(rows)), declared=True),
        "lazy": Form(lambda rows, _: pl.DataFrame(table(rows)).lazy(), declared=True),
        "objects": Form(
            lambda rows, _: pl.DataFrame({k: pl.Series(k, v, dtype=pl.Object) for k, v in as_columns(rows).items()})
        ),
    },
    "pandas": {
        "objects": Form(lambda rows, _: pd.DataFrame(as_columns(rows), dtype=object)),
        "int64": Form(lambda rows, _: table(rows).to_pandas(), declared=True),
    },
    "pyarrow": {"table": Form(lambda rows, _: table(rows), declared=True)},
    "dataset": {},  # `datasets` is installed by `make exports` only; tests/doors/test_tables.py reads its data sets
    "cursor": {"of decimals": Form(lambda rows, _: Cursor(rows))},
    "stream": {
        "reader": Form(lambda rows, _: table(rows).to_reader(), declared=True),
        "object": Form(lambda rows, _: Streamed(table(rows), "__arrow_c_stream__"), declared=True),
    },
    "array": {
        "batch": Form(
            lambda rows, _: Streamed(table(rows).combine_chunks().to_batches()[0], "__arrow_c_array__"), declared=True
        )
    },
    "columns": {"lists": Form(lambda rows, _: as_columns(rows))},
    "rows": {
        "list": Form(lambda rows, _: dictionaries(rows)),
        "iterator": Form(lambda rows, _: iter(dictionaries(rows))),
        "of tables": Form(lambda rows, _: iter([as_columns(rows)] and [table(rows)]), declared=True),
    },
}
"""By the name of the source in the registry, then by form."""
READINGS: dict[str, dict[str, str]] = {
    "items": {"items": "what"},
    "events": {"sequence": "what", "order": "at"},
    "user": {"items": "at"},
}


def all_forms() -> Iterable[tuple[str, Form]]:
    """Return all forms with a name."""
    return [(f"{source}, {name}", form) for source, forms in FORMS.items() for name, form in forms.items()]


def seen_by_others(engine: Any, owner: Any) -> dict[str, Any]:
    """Return the schema of items, and the documents of each user but one.

    Args:
        engine: the private data.
        owner: the key of the user that is left out; None for nobody.
    """
    words = engine.vocabulary.to_pylist()
    spans = pairwise(engine.user_start.tolist())
    held = {
        key: [None if token < 0 else words[token] for token in engine.tokens[begin:end]]
        for key, (begin, end) in zip(engine.user_key.tolist(), spans, strict=True)
    }
    if engine.kind == "items":
        held = {key: sorted(map(str, each)) for key, each in held.items()}
    held.pop(owner, None)
    return {"keys": engine.keys, "reading": engine.reading, "held": held}


def check_one_user(
    read: Callable[..., Any], make: Callable[[list[Row]], Any], rows: list[Row], own: list[Row], columns: dict[str, str]
) -> None:
    """Check that the rows of one user change nothing about the others, wherever they stand.

    A value that does not fit is an error, which is allowed: nothing is released then.

    Args:
        read: `read_engine`, or one with further options.
        make: returns a source of rows.
        rows: the rows of all others.
        own: those of one user, whom no other row names.
        columns: what is read.
    """
    alone = seen_by_others(read(make(rows), user="who", **columns), None)
    for more in ([*rows, *own], [*own, *rows], [*rows[:1], *own, *rows[1:]]):
        try:
            engine = read(make(more), user="who", **columns)
            [owner] = read(make([(own[0][0], rows[0][1], rows[0][2])]), user="who", **columns).user_key.tolist()
        except (ColumnError, SourceError):
            continue
        assert seen_by_others(engine, owner) == alone


__all__ = ["FORMS", "NAMES", "READINGS", "all_forms", "check_one_user", "read_engine"]
