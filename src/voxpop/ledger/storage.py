"""The file of a ledger, an SQLite database. The file is changed in transactions and checked each time it is read.

SQLite writes in place, so the file keeps its owner, group and mode, and a team can share it. If a transaction is
interrupted, for example by kill -9 or a power cut, the next process that opens the file rolls this transaction back.
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from stat import S_ISREG
from typing import Any, Final

from voxpop.errors import LedgerError
from voxpop.files.folder import parsed_json, read_whole

APPLICATION: Final = int.from_bytes(b"vxpl", "big")
"""The number in the header of the file that identifies a ledger (`PRAGMA application_id`)."""
RULE: Final = 3
"""The version of the composition rule (`caps.py`) and of the tables (`PRAGMA user_version`).

A ledger must not change its rule after a result was seen, because releases that are each admitted by one of two rules
may together exceed the budget."""
LOCK_PATIENCE: Final = 60.0
"""The number of seconds to wait for another process. A charge takes milliseconds."""
TABLES: Final = """
CREATE TABLE datasets (name TEXT PRIMARY KEY, epsilon REAL NOT NULL, delta REAL NOT NULL, id TEXT NOT NULL);
CREATE TABLE entries (
    dataset TEXT NOT NULL REFERENCES datasets (name), number INTEGER NOT NULL, mechanism TEXT NOT NULL,
    label TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, charged TEXT NOT NULL, state TEXT NOT NULL,
    attempt INTEGER NOT NULL, release TEXT NOT NULL, kept TEXT NOT NULL, times INTEGER NOT NULL,
    reserve INTEGER NOT NULL, guarantee TEXT NOT NULL, PRIMARY KEY (dataset, number)
);
CREATE TABLE seal (checksum TEXT NOT NULL);
"""
COLUMNS: Final = (
    "number",
    "mechanism",
    "label",
    "charged",
    "state",
    "attempt",
    "release",
    "kept",
    "times",
    "reserve",
)
"""The columns of an entry that are read unchanged. Epsilon and delta repeat numbers of the guarantee for human
readers."""
DAMAGED_LEDGER: Final = (
    "The file is damaged or was edited, so the spent budget is unknown and nothing can be charged. Restore the newest "
    "copy, and make sure that nothing was released since."
)
CARRY_OVER: Final = (
    "was written by another version of voxpop, which adds up releases by another rule. Create a new ledger. For each "
    "data set, call `account.charge` once with the budget in the old ledger as the guarantee."
)
_MARK: Final = "A voxpop ledger exists beside this file. Do not delete it: a lost ledger must not start at zero.\n"


@contextmanager
def changing(path: Path, *, create: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the data sets of a ledger, by name, and write the caller's changes in one transaction.

    Other processes wait in the meantime. Nothing is written if the caller raises an exception.

    Args:
        path: The file.
        create: Whether to create the file if it is missing.

    Raises:
        LedgerError: If another process locks the ledger for a minute, or the ledger is missing, damaged or cannot be
            written. The file is unchanged.
    """
    new = not path.exists()
    if new and not create:
        raise _missing(path)
    if new and traces_of(path):
        raise lost(path)
    try:
        if new:  # Only the owner can read the file until the owner shares it.
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with _opened_database(path, writing=True) as database:
            database.execute("BEGIN IMMEDIATE")
            empty = _is_new(database, path)
            datasets = {} if empty else _datasets(database, path)
            before = json.dumps(datasets)
            yield datasets
            if empty or json.dumps(datasets) != before:
                if empty:
                    _make_tables(database)
                _write_datasets(database, datasets)
            database.execute("COMMIT")
        _mark(path)
    except (sqlite3.Error, OSError) as error:
        raise _failed(path, error, "written") from None


def read_ledger(path: Path) -> dict[str, Any]:
    """Return the data sets of a ledger, by name.

    Raises:
        LedgerError: If the ledger is missing or damaged.
    """
    if not path.exists():
        raise _missing(path)
    try:
        with _opened_database(path, writing=os.access(path, os.W_OK)) as database:
            database.execute("BEGIN")
            if _is_new(database, path):
                raise LedgerError(f"{path} is empty. {DAMAGED_LEDGER}")
            return _datasets(database, path)
    except (sqlite3.Error, OSError) as error:
        raise _failed(path, error, "read") from None


def traces_of(path: Path) -> list[Path]:
    """Return the files (marker and unfinished transaction) that show that a ledger exists or existed here."""
    return [each for each in (_marker_of(path), path.with_name(f"{path.name}-journal")) if each.exists()]


def lost(path: Path) -> LedgerError:
    """Build the error for a ledger that existed but is now missing."""
    listed = " and ".join(str(each) for each in traces_of(path))
    return LedgerError(
        f"{path} is missing, but {listed} shows that it existed. The spent budget is unknown, so nothing can be "
        "charged. Restore the newest copy of the ledger to this path, and make sure that nothing was released since. "
        f"Only if nothing was ever released under this ledger, delete {listed} and create the ledger again."
    )


def _missing(path: Path) -> LedgerError:
    if traces_of(path):
        return lost(path)
    return LedgerError(
        f"{path} does not exist. Check the path and the working directory. If no ledger was ever kept for this "
        "data, create it once with `Ledger(path).open(name, budget, create=True)` or"
        " `voxpop ledger init FILE --dataset NAME --epsilon EPSILON --delta DELTA`."
    )


@contextmanager
def _opened_database(path: Path, *, writing: bool) -> Iterator[sqlite3.Connection]:
    """Connect to a ledger. If a transaction is still open at the end, it is rolled back."""
    status = path.stat()
    if not S_ISREG(status.st_mode):
        raise LedgerError(f"{path} is not a regular file, so it cannot be a ledger. Give another file.")
    if status.st_nlink > 1:
        raise LedgerError(
            f"{path} has a second name (a hard link), and changes under one name may be lost under the other. Nothing "
            "was charged. Remove the other name; use a symbolic link instead."
        )
    address = f"{path.absolute().as_uri()}?mode={'rw' if writing else 'ro'}"
    with closing(sqlite3.connect(address, uri=True, timeout=LOCK_PATIENCE, isolation_level=None)) as database:
        # The file and its folder are written to disk before a change takes effect.
        database.execute("PRAGMA synchronous = EXTRA")
        database.execute("PRAGMA foreign_keys = ON")
        database.execute("PRAGMA trusted_schema = OFF")
        yield database


def _is_new(database: sqlite3.Connection, path: Path) -> bool:
    """Return whether the file is new and still empty. Raise an error if a ledger was emptied."""
    if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        if _marker_of(path).exists() or path.stat().st_size:
            raise LedgerError(f"{path} has no tables. {DAMAGED_LEDGER}")
        return True
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (rule,) = database.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise LedgerError(f"{path} is not a ledger that voxpop wrote. Give another file.")
    if rule != RULE:
        raise LedgerError(f"{path} {CARRY_OVER}")
    return False


def _no_ledger(path: Path) -> LedgerError:
    """Build the error for a file that is not a database, such as the JSON ledgers of earlier versions."""
    with suppress(OSError, ValueError, AttributeError):
        if parsed_json(read_whole(path)).get("format") == "voxpop ledger":
            return LedgerError(f"{path} {CARRY_OVER}")
    return LedgerError(f"{path} is not a ledger that voxpop wrote, or it is damaged. {DAMAGED_LEDGER}")


def _make_tables(database: sqlite3.Connection) -> None:
    for statement in TABLES.split(";\n"):
        if statement.strip():
            database.execute(statement)
    database.execute(f"PRAGMA application_id = {APPLICATION}")
    database.execute(f"PRAGMA user_version = {RULE}")


def _datasets(database: sqlite3.Connection, path: Path) -> dict[str, Any]:
    """Return all data sets with their entries.

    Raises:
        LedgerError: If the data sets differ from those that were written.
    """
    try:
        found: dict[str, Any] = {
            name: {"id": key, "budget": {"epsilon": epsilon, "delta": delta}, "entries": []}
            for name, epsilon, delta, key in database.execute("SELECT * FROM datasets ORDER BY rowid")
        }
        rows = database.execute(
            f"SELECT dataset, epsilon, delta, guarantee, {', '.join(COLUMNS)} FROM entries ORDER BY dataset, number"
        )
        for dataset, epsilon, delta, guarantee, *values in rows:
            stated = parsed_json(guarantee)
            if (stated["epsilon"], stated["delta"]) != (epsilon, delta):
                raise ValueError
            found[dataset]["entries"].append({**dict(zip(COLUMNS, values, strict=True)), "guarantee": stated})
        (checksum,) = database.execute("SELECT checksum FROM seal").fetchone()
        computed = _checksum(found)  # This fails for names that are not text and for infinite numbers.
    except (sqlite3.DatabaseError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            raise
        raise LedgerError(f"{path} has no readable tables. {DAMAGED_LEDGER}") from None
    if checksum != computed:
        raise LedgerError(
            f"in {path}, the checksum differs from the content, so the file was changed after it was written. "
            f"{DAMAGED_LEDGER}"
        )
    return found


def _write_datasets(database: sqlite3.Connection, datasets: dict[str, Any]) -> None:
    """Insert and replace rows that differ. Data sets and entries are never removed."""
    for name, content in datasets.items():
        budget = content["budget"]
        database.execute(
            "INSERT INTO datasets VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (name, budget["epsilon"], budget["delta"], content["id"]),
        )
        for each in content["entries"]:
            stated = each["guarantee"]
            values = {column: each[column] for column in COLUMNS}
            values |= {"dataset": name, "epsilon": stated["epsilon"], "delta": stated["delta"]}
            values |= {"guarantee": json.dumps(stated, allow_nan=False)}
            database.execute(
                f"INSERT OR REPLACE INTO entries ({', '.join(values)}) VALUES ({', '.join('?' * len(values))})",
                tuple(values.values()),
            )
    database.execute("DELETE FROM seal")
    database.execute("INSERT INTO seal VALUES (?)", (_checksum(datasets),))


def _failed(path: Path, error: Exception, done: str) -> LedgerError:
    """Build the error for a file that cannot be written or read."""
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return _no_ledger(path)
    if "locked" in str(error):
        return LedgerError(f"{path} is locked by another process. Nothing was charged. Try again.")
    return LedgerError(
        f"{path} cannot be {done}: {getattr(error, 'strerror', None) or error}. Nothing was charged. Check the "
        "permissions of the file and its folder, and the free space."
    )


def _mark(path: Path) -> None:
    """Write the marker next to a ledger if it is missing."""
    with suppress(FileExistsError):
        descriptor = os.open(_marker_of(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_MARK.encode())


def _marker_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.exists")


def _checksum(datasets: dict[str, Any]) -> str:
    canonical = json.dumps(datasets, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return f"sha256:{sha256(canonical.encode()).hexdigest()}"
