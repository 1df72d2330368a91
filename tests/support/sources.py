"""All forms of the sources in the registry, and checks that the rows of one user affect no other user."""

import gzip
import io
import json
import sqlite3
from collections import namedtuple
from collections.abc import Callable, Iterable
from dataclasses import make_dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet

import voxpop as vp
from support.look import read_engine
from voxpop.errors import ColumnError, InputError, SourceError

NAMES = ("who", "what", "at")
Row = tuple[Any, Any, Any]


class Form(NamedTuple):
    """One form of a source, such as a file format or a library's table.

    Attributes:
        make: A function that returns the source, given rows and a folder.
        declared: Whether the source declares types. Such a source accepts only integers.
        holds: A function that returns whether the form can contain a value.
        lists: Whether the form can contain lists of values.
        text: Whether the form is text, which is decoded in blocks of bytes.
    """

    make: Callable[[list[Row], Path], Any]
    declared: bool = False
    holds: Callable[[Any], bool] = lambda _: True
    lists: bool = False
    text: bool = False


class Streamed:
    """An object that exposes only one Arrow interface."""

    def __init__(self, held: Any, name: str) -> None:
        setattr(self, name, getattr(held, name))


def table(rows: list[Row]) -> pa.Table:
    """Return rows as a table with a schema that declares 64-bit integers."""
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table({name: pa.array(list(each), pa.int64()) for name, each in zip(NAMES, columns, strict=True)})


def as_columns(rows: list[Row]) -> dict[str, list[Any]]:
    """Return rows as lists of values."""
    return {name: [row[place] for row in rows] for place, name in enumerate(NAMES)}


def dictionaries(rows: list[Row]) -> list[dict[str, Any]]:
    """Return rows as dictionaries."""
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


def parquet(rows: list[Row], folder: Path) -> Path:
    """Write two Parquet files into a folder."""
    (folder / "parquet").mkdir(exist_ok=True)
    whole = pl.DataFrame(table(rows))
    for number, part in enumerate((whole[: len(rows) // 2], whole[len(rows) // 2 :])):
        part.write_parquet(folder / "parquet" / f"{number}.parquet")
    return folder / "parquet"


def csv(rows: list[Row], folder: Path) -> Path:
    """Write CSV."""
    quoted = [[None if each is None else str(each).replace('"', '""') for each in row] for row in rows]
    cells = [",".join("" if each is None else f'"{each}"' for each in row) for row in quoted]
    (folder / "rows.csv").write_bytes("\n".join([",".join(NAMES), *cells, ""]).encode())
    return folder / "rows.csv"


def csv_gz(rows: list[Row], folder: Path) -> Path:
    """Write compressed CSV in UTF-16."""
    (folder / "rows.csv.gz").write_bytes(gzip.compress(csv(rows, folder).read_bytes().decode().encode("utf-16")))
    return folder / "rows.csv.gz"


def tsv(rows: list[Row], folder: Path) -> Path:
    """Write tab-separated values with rows that end in CR LF."""
    quoted = [["" if each is None else '"' + str(each).replace('"', '""') + '"' for each in row] for row in rows]
    (folder / "rows.tsv").write_bytes("\r\n".join(["\t".join(row) for row in [NAMES, *quoted]]).encode())
    return folder / "rows.tsv"


def json_lines(rows: list[Row], folder: Path) -> Path:
    """Write JSON lines."""
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, dictionaries(rows))) + "\n")
    return folder / "rows.jsonl"


def json_array(rows: list[Row], folder: Path) -> Path:
    """Write one array of objects."""
    (folder / "rows.json").write_text(json.dumps(dictionaries(rows), indent=1))
    return folder / "rows.json"


def feather(rows: list[Row], folder: Path) -> Path:
    """Write an Arrow file."""
    pyarrow.feather.write_feather(table(rows), folder / "rows.feather")
    return folder / "rows.feather"


def folders(rows: list[Row], folder: Path) -> Path:
    """Write CSV in folders with names that contain the values of a column, as Hive, Spark and Dask do."""
    root = folder / f"hive {len(list(folder.iterdir()))}"
    for who, what, at in rows:
        name = "__HIVE_DEFAULT_PARTITION__" if what is None else quote(what, safe="")
        file = root / f"what={name}" / "rows.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(file, "a", newline="") as out:
            out.write("" if out.tell() else "who,at\n")
            cells = ["" if each is None else '"' + str(each).replace('"', '""') + '"' for each in (who, at)]
            out.write(f"{','.join(cells)}\n")
    return root


Pair = namedtuple("Pair", NAMES)
Record = make_dataclass("Record", NAMES)


def sqlite_rows(rows: list[Row], folder: Path) -> list[sqlite3.Row]:
    """Return rows that include their column names."""
    opened = connection(rows, folder)
    opened.row_factory = sqlite3.Row
    return opened.execute("select * from rows").fetchall()


def dataset(rows: list[Row], folder: Path) -> Any:
    """Return a dataset of Parquet files."""
    return pyarrow.dataset.dataset(parquet(rows, folder))


def structured(rows: list[Row], kind: str) -> Any:
    """Return a structured numpy array."""
    made = np.empty(len(rows), [(name, kind) for name in NAMES])
    made[:] = rows
    return made


def connection(rows: list[Row], _: Path) -> sqlite3.Connection:
    """Return a database with values of Python's own types. Decimals are stored as marked strings."""
    opened = sqlite3.connect(":memory:")
    opened.execute("create table rows (who, what, at)")
    marked = [tuple(f"d{each}" if isinstance(each, Decimal) else each for each in row) for row in rows]
    opened.executemany("insert into rows values (?, ?, ?)", marked)
    return opened


class Cursor:
    """A DB-API cursor that returns some values as decimals, as drivers do for NUMERIC."""

    description = tuple((name, None, None, None, None, None, None) for name in NAMES)

    def __init__(self, rows: list[Row]) -> None:
        self._rows = iter(rows)

    def fetchmany(self, size: int) -> list[Row]:
        """Return the next rows."""
        return [row for _, row in zip(range(size), self._rows, strict=False)]


def plain(value: Any) -> bool:
    """Return whether SQLite can store a value without conversion."""
    whole = type(value) is int and abs(value) < 2**63  # SQLite has no booleans.
    return value is None or isinstance(value, str | float) or whole


Part = tuple[list[Row], tuple[pa.DataType, pa.DataType, pa.DataType], bool]
"""Rows, the types of their columns, and whether the columns are stored in dictionaries that contain null."""


def typed_table(part: Part) -> pa.Table:
    """Return rows as a table with a separately declared schema.

    Raises:
        pa.ArrowException, TypeError, ValueError: If a value does not have the declared type.
    """
    rows, kinds, coded = part
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(kinds)]
    return pa.table(dict(zip(NAMES, map(with_null, columns) if coded else columns, strict=True)))


def with_null(column: pa.Array) -> pa.Array:
    """Return values in a dictionary that contains null and a value that no row uses."""
    if pa.types.is_nested(column.type) or pa.types.is_null(column.type):
        return column
    whole = pa.concat_arrays([column, pa.nulls(1, column.type), column[:1]])
    return pa.DictionaryArray.from_arrays(pa.array(range(len(column))), whole)


def part_files(parts: list[Part], folder: Path, ending: str) -> list[Path]:
    """Write each part into a separate file."""
    files = [folder / f"{number}{ending}" for number, _ in enumerate(parts)]
    for file, part in zip(files, parts, strict=True):
        if ending == ".parquet":
            pyarrow.parquet.write_table(typed_table((*part[:2], False)), file)  # Dictionaries contain no null here.
        elif ending == ".feather":
            pyarrow.feather.write_feather(typed_table(part), file)
        else:
            pyarrow.csv.write_csv(typed_table((part[0], part[1], False)), file)
    return files


def part_folder(parts: list[Part], folder: Path, ending: str) -> Path:
    """Write each part into a separate file in a folder."""
    part_files(parts, folder, ending)
    return folder


SEVERAL: dict[str, dict[str, Callable[[list[Part], Path], Any]]] = {
    "files": {
        "folder of Parquet": lambda parts, to: part_folder(parts, to, ".parquet"),
        "paths of Arrow": lambda parts, to: part_files(parts, to, ".feather"),
        "CSV and Arrow": lambda parts, to: [
            *part_files(parts[:1], to, ".csv"),
            *part_files([parts[0], *parts[1:]], to, ".feather")[1:],
        ],
        "glob of CSV": lambda parts, to: f"{part_folder(parts, to, '.csv')}/*.csv",
    },
    "pyarrow.dataset": {
        "of files": lambda parts, to: pyarrow.dataset.dataset(part_folder(parts, to, ".parquet")),
    },
    "rows": {
        "pyarrow tables": lambda parts, _: iter([typed_table(each) for each in parts]),
        "batches": lambda parts, _: [typed_table(each).to_batches()[0] for each in parts],
        "polars tables": lambda parts, _: iter([pl.DataFrame(typed_table(each)) for each in parts]),
        "pandas tables": lambda parts, _: iter([pd.DataFrame(as_columns(rows)) for rows, _, _ in parts]),
        "lists": lambda parts, _: iter([as_columns(rows) for rows, _, _ in parts if rows]),
        "streams": lambda parts, _: iter([typed_table(each).to_reader() for each in parts]),
    },
}
"""Sources of several tables, each with a separate schema, by the name of the source in the registry."""
UNDECLARED = ("CSV and Arrow", "glob of CSV", "pandas tables", "lists")
"""Sources in which some values have no declared type, so that the same spelling means the same value."""


def in_json(value: Any) -> bool:
    """Return whether JSON can represent a value without conversion."""
    return not isinstance(value, Decimal)


FORMS: dict[str, dict[str, Form]] = {
    "files": {
        "parquet": Form(parquet, declared=True),
        "csv": Form(csv, text=True),
        "csv.gz": Form(csv_gz, text=True),
        "tsv": Form(tsv, text=True),
        "json lines": Form(json_lines, holds=in_json, lists=True, text=True),
        "json array": Form(json_array, holds=in_json, lists=True, text=True),
        "feather": Form(feather, declared=True),
        "names of folders": Form(
            folders, holds=lambda value: value is None or (isinstance(value, str) and len(value) <= 40), text=True
        ),
    },
    "opened": {
        "feather": Form(lambda rows, to: io.BytesIO(feather(rows, to).read_bytes()), declared=True),
        "csv": Form(lambda rows, to: io.BytesIO(csv(rows, to).read_bytes()), text=True),
        "json": Form(lambda rows, to: io.BytesIO(json_lines(rows, to).read_bytes()), holds=in_json, text=True),
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
    "pyarrow.dataset": {
        "in memory": Form(lambda rows, _: pyarrow.dataset.dataset(table(rows)), declared=True),
        "files": Form(dataset, declared=True),
    },
    "numpy": {
        "int64": Form(lambda rows, _: structured(rows, "i8"), declared=True),
        "objects": Form(lambda rows, _: structured(rows, "O")),
    },
    "dataset": {},  # Only `make exports` installs `datasets`, and tests/doors/test_tables.py reads its data sets.
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
    "columns": {"lists": Form(lambda rows, _: as_columns(rows), lists=True)},
    "rows": {
        "list": Form(lambda rows, _: dictionaries(rows), lists=True),
        "iterator": Form(lambda rows, _: iter(dictionaries(rows)), lists=True),
        "named tuples": Form(lambda rows, _: [Pair(*row) for row in rows], lists=True),
        "dataclasses": Form(lambda rows, _: [Record(*row) for row in rows]),
        "records of numpy": Form(lambda rows, _: list(structured(rows, "O"))),
        "sqlite3": Form(sqlite_rows, holds=plain),
        "of tables": Form(lambda rows, _: iter([as_columns(rows)] and [table(rows)]), declared=True),
    },
}
"""The forms, by the name of the source in the registry and the name of the form."""
READINGS: dict[str, dict[str, Any]] = {
    "items": {"items": "what"},
    "events": {"sequence": "what", "order": "at"},
    "user": {"items": "at"},
    "composite": {"items": ["what", "at"]},
    "several users": {"user": ["who", "at"], "items": "what"},
    "text": {"text": "what", "tokenizer": "whitespace"},
}
LISTS: dict[str, dict[str, Any]] = {"tokens": {"tokens": "what"}, "lists": {"items": "what"}}
"""Readings of columns of lists."""


def all_forms() -> Iterable[tuple[str, Form]]:
    """Return all forms with their names."""
    return [(f"{source}, {name}", form) for source, forms in FORMS.items() for name, form in forms.items()]


def seen_by_others(engine: Any, owners: set[int]) -> dict[str, Any]:
    """Return the schema of the items, and the documents of all users except the given owners.

    Args:
        engine: The private data.
        owners: The keys of the omitted users.
    """
    words = engine.vocabulary.to_pylist()
    spans = pairwise(engine.user_start.tolist())
    held = {
        key: [None if token < 0 else words[token] for token in engine.tokens[begin:end]]
        for key, (begin, end) in zip(engine.user_key.tolist(), spans, strict=True)
    }
    if engine.kind == "items":
        held = {key: sorted(map(str, each)) for key, each in held.items()}
    held = {key: each for key, each in held.items() if key not in owners and each}
    return {"keys": engine.keys, "reading": engine.token_source, "held": held}


def outcome(read: Callable[..., Any], source: Any, columns: dict[str, Any]) -> Any:
    """Return the engine of a source, or None if the source is rejected."""
    try:
        return read(source, **{"user": "who", **columns})
    except (ColumnError, InputError, SourceError):
        return None


def check_one_user(
    read: Callable[..., Any], make: Callable[[list[Row]], Any], rows: list[Row], own: list[Row], columns: dict[str, Any]
) -> Any:
    """Check that the rows of one user do not affect the data of other users, at any position in the source.

    A value of an unsuitable type is allowed to raise an error, because nothing is released in that case.

    Args:
        read: The function `read_engine`, or a variant with further options.
        make: A function that returns a source of rows.
        rows: The rows of all other users.
        own: The rows of one user, who has no other rows.
        columns: The columns to read.

    Returns:
        The engine of the other users, or None if their rows are rejected.
    """
    alone = outcome(read, make(rows), columns)
    if alone is None:
        return None
    timed = any("at" in each for each in columns.values())  # Otherwise, the rows with the user's times are equal.
    owners = [outcome(read, make([(own[0][0], rows[0][1], row[2])]), columns) for row in (own if timed else own[:1])]
    if None in owners:
        return alone
    if not all(each.user_key.size for each in owners):
        # If the first of the other rows has no event, the key occurs only in the user's own events.
        owners += filter(None, (outcome(read, make([row]), columns) for row in own))
    keys = {key for each in owners for key in each.user_key.tolist()}
    middle = len(rows) // 2
    for more in ([*rows, *own], [*own, *rows], [*rows[:middle], *own, *rows[middle:]]):
        check_same(alone, outcome(read, make(more), columns), keys)
    return alone


def check_same(alone: Any, engine: Any, owners: set[int]) -> None:
    """Check that users outside of `owners` have the same data and types in both engines, if the source is accepted."""
    if engine is None:
        return
    mine, theirs = seen_by_others(alone, owners), seen_by_others(engine, owners)
    if not any(mine["held"].values()):  # Without items, no types are published.
        del mine["keys"], theirs["keys"]
    assert theirs == mine


def check_subsets(
    read: Callable[..., Any], make: Callable[[list[Row]], Any], rows: list[Row], columns: Any, whole: Any
) -> None:
    """Check that the rows of each user give the same data in any order of users, alone, and without any one user.

    Args:
        read: The function `read_engine`, or a variant with further options.
        make: A function that returns a source of rows.
        rows: The rows of all users.
        columns: The columns to read.
        whole: The engine of these rows, or None if they are rejected.
    """
    if whole is None:
        return
    by_user = sorted(rows, key=lambda row: str(row[0]), reverse=True)
    if by_user != rows:
        assert seen_by_others(outcome(read, make(by_user), columns), set()) == seen_by_others(whole, set())
    users = {row[0] for row in rows}
    if len(users) == 1:
        return
    for who in users:
        rest, mine = [row for row in rows if row[0] != who], [row for row in rows if row[0] == who]
        engine = outcome(read, make(mine), columns)
        check_same(engine, whole, set(whole.user_key.tolist()) - set(engine.user_key.tolist()))
        if len(users) > 2:  # The rows of two users are both already read alone.
            check_same(outcome(read, make(rest), columns), whole, set(engine.user_key.tolist()))


__all__ = ["FORMS", "NAMES", "READINGS", "all_forms", "check_one_user", "read_engine"]
