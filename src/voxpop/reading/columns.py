"""Checks of columns. Each user column and each text column must have one type, and users must not be null."""

import difflib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError, InternalError, SourceError, VoxpopError, no_thread_started
from voxpop.files.progress import row_called
from voxpop.reading.arrow import string_array
from voxpop.reading.keys import is_string

_Thing = TypeVar("_Thing")

# Error messages of readers may quote rows, so these messages are removed.

STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""Exceptions that end a program. All other exceptions may quote rows, including panics of Rust (a BaseException)."""
NOT_SHOWN = "the message of the reader may quote rows and is not shown."
NO_MEMORY = 'no memory was left for the table. Set a limit, such as vp.ReadOptions(memory="2GiB") (--memory 2GiB).'


def quieten(error: BaseException) -> None:
    """Remove data and causes from an exception, because a later error may be logged together with this exception."""
    if isinstance(error, UnicodeDecodeError):
        error.object = b""
    if isinstance(error, UnicodeEncodeError):
        error.object = ""
    if not isinstance(error, VoxpopError):
        vars(error).clear()  # for example the document of a JSONDecodeError, or notes
        if not isinstance(error, OSError) or error.errno is None:
            error.args = ("the reader's message may quote rows and is not shown",)
    error.__cause__ = error.__context__ = None


@contextmanager
def withheld(problem: str = "the table cannot be read", advice: str = NOT_SHOWN) -> Iterator[None]:
    """Convert any failure of a reader to a SourceError that quotes no data."""
    try:
        yield
    except (VoxpopError, MemoryError, *STOPS):
        raise
    except BaseException as error:
        kind, threads = type(error).__name__, no_thread_started(error)
        quieten(error)
        if threads:
            raise MemoryError(NO_MEMORY) from None
        raise SourceError(f"{problem}: its reader failed with {kind}. Check it without voxpop: {advice}") from None


def guarded(items: Iterator[_Thing], guard: Callable[[], AbstractContextManager[None]] = withheld) -> Iterator[_Thing]:
    """Yield items (except None), computing each one within a guard."""
    while True:
        with guard():
            item = next(items, None)
        if item is None:
            return
        yield item


def enclosed(work: Callable[[], _Thing]) -> _Thing:
    """Return the result of `work`, which converts a source to a corpus.

    No library exception is raised, not even as the cause or context of another exception. Each failure of the source
    has already been converted to a SourceError (`withheld`). Any other exception is a bug in voxpop. The bug is
    reported with its frames, but without its text.

    Raises:
        VoxpopError: If the work fails.
        MemoryError: If memory is exhausted. Each engine gives specific advice.
    """
    try:
        return work()
    except VoxpopError as error:
        error.__cause__ = error.__cause__ if isinstance(error.__cause__, _Withheld) else None
        error.__context__ = None
        raise
    except STOPS:
        raise
    except MemoryError as error:
        problem: BaseException = MemoryError(NO_MEMORY).with_traceback(error.__traceback__)
    except BaseException as error:
        kind = type(error).__name__
        problem = InternalError(f"the table was not read, because of {kind}")
        problem.__cause__ = type(kind, (_Withheld,), {})(NOT_SHOWN).with_traceback(error.__traceback__)
    raise problem from problem.__cause__


class _Withheld(Exception):  # noqa: N818
    """A replacement for a library exception.

    The replacement has the same name and frames, but neither text nor attributes.
    """


Batches = Iterator[tuple[str, pa.RecordBatch]]
"""The description of the source of rows, and the rows. After the check of users, the first of two columns contains the
users."""
CountedBatches = Iterator[tuple[str, int, pa.RecordBatch]]
"""The source of rows, the number of earlier rows, and the rows."""


_MOST_NAMES = 20
"""The maximum number of column names in a message."""


ONE_ENTRY = "The source needs one entry for each column. If the names are users, give a list of rows instead."


def check_columns(wanted: list[str], existing: list[str], where: str, *, declared: bool = True, hint: str = "") -> None:
    """Check that every required column exists exactly once.

    Args:
        wanted: The names of required columns.
        existing: The names of the columns of the source.
        where: The source, for messages.
        declared: Whether the names are from a schema. Keys of dictionaries and the first rows of CSV files may be data,
            so they are never shown.
        hint: The next step for a missing column.

    Raises:
        ColumnError: If a column is missing or exists twice.
    """
    for name in wanted:
        count = existing.count(name)
        if count > 1:
            raise ColumnError(f'{where} has {count} columns called "{name}". Rename all but one.')
        if count == 0 and not declared:
            alike = any(each.lower() == name.lower() for each in existing)
            case = " One of them differs only in upper and lower case." if alike else ""
            raise ColumnError(
                f'{where} has no column "{name}"; its names are not shown because they may be data.{case} '
                f"Check the spelling. {hint or ONE_ENTRY}"
            )
        if count == 0:
            close = difflib.get_close_matches(name.lower(), map(str.lower, existing), n=1)
            meant = next((each for each in existing if close and each.lower() == close[0]), None)
            hint = f" {hint}" if hint else f' Did you mean "{meant}"?' if meant else ""
            listed = ", ".join(f'"{each}"' for each in existing[:_MOST_NAMES]) or "none"
            more = f" and {len(existing) - _MOST_NAMES:,} more" if len(existing) > _MOST_NAMES else ""
            raise ColumnError(f'{where} has no column "{name}". Choose one of {listed}{more}.{hint}')


def checked_users(batches: Batches, user: str) -> CountedBatches:
    """Yield batches with valid users of one type, each with the number of earlier rows of the same source."""
    seen: dict[str, int] = {}
    kinds: set[str] = set()
    for where, batch in batches:
        if batch.num_rows == 0:
            continue
        first = seen.get(where, 0)
        seen[where] = first + batch.num_rows
        users = _user_column(batch.column(user), where, user, first)
        _check_kinds(users, kinds, user)
        yield where, first, batch.set_column(batch.schema.get_field_index(user), user, users)


def _user_column(ids: pa.Array, where: str, name: str, first: int) -> pa.Array:
    """Check a batch of user ids, and convert integers to one type and strings to another."""
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    if ids.null_count:
        row = first + 1 + int(np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False))[0])
        raise SourceError(
            f'{where}, {row_called(row)}: the column "{name}" is empty, so the row belongs to no user. Fill it in, or '
            f'skip such rows with missing_users="drop" (--drop-missing-users).'
        )
    if pa.types.is_integer(ids.type):
        return ids.cast(pa.uint64() if ids.type == pa.uint64() else pa.int64())
    if is_string(ids.type):
        return valid_text(ids, where, name)
    raise InternalError("users must be whole numbers or strings by now")


def _check_kinds(users: pa.Array, kinds: set[str], name: str) -> None:
    """Raise an error for ids of mixed kinds, or if two different integers would have the same 64 bits."""
    if not pa.types.is_integer(users.type):
        kinds.add("strings")
    elif users.type == pa.uint64():
        kinds.add("numbers from 2^63 on" if pc.max(users).as_py() >= 2**63 else "numbers")
    else:
        kinds.add("numbers below 0" if pc.min(users).as_py() < 0 else "numbers")
    if ("strings" in kinds and len(kinds) > 1) or {"numbers from 2^63 on", "numbers below 0"} <= kinds:
        raise ColumnError(
            f'the column "{name}" contains {" and ".join(sorted(kinds))}, which cannot be distinguished safely. '
            "Give it one type in all files."
        )


def valid_text(texts: pa.Array, where: str, name: str) -> pa.Array:
    """Return strings as large_string, after checking that they are UTF-8."""
    texts = texts.cast(pa.large_string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        quieten(error)
        raise SourceError(
            f'{where}: the column "{name}" contains bytes that are not UTF-8; save it as UTF-8.'
        ) from None
    return texts


def text_column(texts: pa.Array, where: str) -> pa.Array:
    """Return a text column as large_string.

    Raises:
        ColumnError: If the column has the wrong type.
    """
    if pa.types.is_dictionary(texts.type):
        with withheld(f"{where}: the dictionary of the texts is damaged"):
            texts = texts.dictionary_decode()
    if pa.types.is_null(texts.type):
        return string_array([""] * len(texts))
    if not is_string(texts.type):
        raise ColumnError(
            f"{where}: text= needs a column of strings, got {texts.type}; for lists use tokens= or sequence=, for "
            "numbers items=."
        )
    return valid_text(texts, where, "text")


# Batches contain about a megabyte. Sources limit the number of rows, but a row may be a single number or a whole book.

FEW_ROWS = 64
"""The number of rows to request from a source at once within a memory limit. If each row has one megabyte, they take 64
MB."""
PORTION = 1 << 20
"""The size of a batch in bytes."""


def portions(batches: Batches, rows: int) -> Batches:
    """Yield the rows in the same order, with large batches split and small batches joined.

    Args:
        batches: The batches of the source.
        rows: The maximum number of rows of a joined batch.
    """
    held: list[pa.RecordBatch] = []
    size, count, place = 0, 0, ""
    for where, piece in chain.from_iterable(_split(*each) for each in batches):
        own = _own_bytes(piece)
        full = size + own > PORTION or count + piece.num_rows > rows
        if held and (full or where != place or not _fit(held[0], piece)):
            yield place, _joined(held)
            held, size, count = [], 0, 0
        held.append(piece)
        size, count, place = size + own, count + piece.num_rows, where
    if held:
        yield place, _joined(held)


def _split(where: str, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield a batch in parts. The batch is halved repeatedly until each part is small or has a single row."""
    if batch.num_rows < 2 or _own_bytes(batch) <= PORTION:
        yield where, batch
        return
    half = batch.num_rows // 2
    yield from _split(where, batch.slice(0, half))
    yield from _split(where, batch.slice(half))


def _own_bytes(batch: pa.RecordBatch) -> int:
    """Return the number of bytes of a batch's rows, without the dictionaries that its slices share."""
    return int(batch.nbytes - batch.slice(0, 0).nbytes)


def _fit(first: pa.RecordBatch, second: pa.RecordBatch) -> bool:
    """Check whether two batches can be joined. Batches with dictionaries would first need a common dictionary."""
    coded = any(pa.types.is_dictionary(kind) for kind in first.schema.types)
    return not coded and bool(first.schema.equals(second.schema))


def _joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)
