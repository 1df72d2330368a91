"""Columns checked: users and texts of one type each, and no row without a user."""

import difflib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import chain
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError, InternalError, SourceError, VoxpopError
from voxpop.files.progress import row_called
from voxpop.reading.arrow import string_array
from voxpop.reading.keys import is_string

_Thing = TypeVar("_Thing")

# Error messages of readers may quote rows, and are removed.

STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)
"""What ends a program. Any other exception may quote rows, also the panics of Rust, whose base is BaseException."""
NOT_SHOWN = "the message of the reader may quote rows and is not shown."
NO_MEMORY = 'no memory was left for the table. Set a limit, such as vp.ReadOptions(memory="2GiB") (--memory 2GiB).'


def quieten(error: BaseException) -> None:
    """Remove the data that an exception may quote, and its causes: a log of the new exception may contain them."""
    if isinstance(error, UnicodeDecodeError):
        error.object = b""
    if isinstance(error, UnicodeEncodeError):
        error.object = ""
    if not isinstance(error, VoxpopError):
        vars(error).clear()  # such as the document of a JSONDecodeError, and notes
        if not isinstance(error, OSError) or error.errno is None:
            error.args = ("what the reader said may quote rows, and is left out",)
    error.__cause__ = error.__context__ = None


@contextmanager
def withheld(problem: str = "the table cannot be read", advice: str = NOT_SHOWN) -> Iterator[None]:
    """Turn any failure of a reader into a SourceError that quotes nothing."""
    try:
        yield
    except (VoxpopError, MemoryError, *STOPS):
        raise
    except BaseException as error:
        kind, threads = type(error).__name__, isinstance(error, RuntimeError) and "start new thread" in str(error)
        quieten(error)
        if threads:
            raise MemoryError(NO_MEMORY) from None
        raise SourceError(f"{problem}: its reader failed with {kind}. Check it without voxpop: {advice}") from None


def guarded(items: Iterator[_Thing], guard: Callable[[], AbstractContextManager[None]] = withheld) -> Iterator[_Thing]:
    """Yield items, none of them None; each is computed within a guard."""
    while True:
        with guard():
            item = next(items, None)
        if item is None:
            return
        yield item


def enclosed(work: Callable[[], _Thing]) -> _Thing:
    """Return the result of the whole way from a source to a corpus.

    No exception of a library leaves it, neither raised nor as a cause or context of another one. Failures of the source
    are a SourceError by then (`withheld`). Anything else is a fault of voxpop, which keeps its frames and not its text.

    Raises:
        VoxpopError: if the work fails.
        MemoryError: if memory is exhausted. Each engine gives its own advice.
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
    """Stands for an exception of a library: the same name and frames, without its text and attributes."""


Batches = Iterator[tuple[str, pa.RecordBatch]]
"""Where the rows come from, in words, and the rows."""
Rows = Iterator[tuple[str, pa.Array, pa.Array]]
"""The source of rows, their users and their content."""
CountedBatches = Iterator[tuple[str, int, pa.RecordBatch]]
"""The source of rows, the number of earlier rows, and the rows."""


_MOST_NAMES = 20
"""Column names in a message."""


ONE_ENTRY = "The source needs one entry for each column. If the names are users, give a list of rows instead."


def check_columns(wanted: list[str], existing: list[str], where: str, *, declared: bool = True, hint: str = "") -> None:
    """Check that every wanted column exists once.

    Args:
        wanted: names of columns.
        existing: names of the columns of the source.
        where: the source, for messages.
        declared: whether the names come from a schema. Keys of dictionaries and first rows of CSV may be data, and are
            never shown.
        hint: a next step for a missing column.

    Raises:
        ColumnError: if a column is missing or exists twice.
    """
    for name in wanted:
        count = existing.count(name)
        if count > 1:
            raise ColumnError(f'{where} has {count} columns called "{name}". Rename all but one.')
        if count == 0 and not declared:
            alike = any(each.lower() == name.lower() for each in existing)
            case = " One of them differs only in upper and lower case." if alike else ""
            raise ColumnError(
                f'{where} has no column "{name}"; its own names are not shown because they may be data.{case} '
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
    """Pass on batches whose users are of one type and never null, and the number of earlier rows of the same source."""
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
    """Check a batch of user ids; whole numbers and strings each become one type."""
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    if ids.null_count:
        row = first + 1 + int(np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False))[0])
        raise SourceError(
            f'{where}, {row_called(row)}: the column "{name}" is empty, so the row belongs to no user. Fill it in, '
            'or leave such rows out with missing_users="drop" (--drop-missing-users).'
        )
    if pa.types.is_integer(ids.type):
        return ids.cast(pa.uint64() if ids.type == pa.uint64() else pa.int64())
    if is_string(ids.type):
        return valid_text(ids, where, name)
    raise InternalError("users must be whole numbers or strings by now")


def _check_kinds(users: pa.Array, kinds: set[str], name: str) -> None:
    """Refuse ids that are strings here and numbers there, or whose 64 bits would stand for two numbers."""
    if not pa.types.is_integer(users.type):
        kinds.add("strings")
    elif users.type == pa.uint64():
        kinds.add("numbers from 2^63 on" if pc.max(users).as_py() >= 2**63 else "numbers")
    else:
        kinds.add("numbers below 0" if pc.min(users).as_py() < 0 else "numbers")
    if ("strings" in kinds and len(kinds) > 1) or {"numbers from 2^63 on", "numbers below 0"} <= kinds:
        raise ColumnError(
            f'the column "{name}" holds {" and ".join(sorted(kinds))}, which cannot be told apart safely. '
            "Give it one type in all files."
        )


def valid_text(texts: pa.Array, where: str, name: str) -> pa.Array:
    """Return strings as large_string, after checking that they are UTF-8."""
    texts = texts.cast(pa.large_string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        quieten(error)
        raise SourceError(f'{where}: the column "{name}" holds bytes that are not UTF-8; save it as UTF-8.') from None
    return texts


def text_column(texts: pa.Array, where: str) -> pa.Array:
    """Return a column of texts as large_string.

    Raises:
        ColumnError: where it holds anything else.
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


# Batches of about a megabyte, from sources that count rows: these may be numbers or whole books.

FEW_ROWS = 64
"""Number of rows to request from a source at once within a bound: rows of a megabyte each are then held 64 at a
time."""
PORTION = 1 << 20
"""Bytes."""


def portions(batches: Batches, rows: int) -> Batches:
    """Pass rows on in their order: large batches are split, and small ones put together.

    Args:
        batches: as a source gives them.
        rows: most rows of those that are put together.
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
    """Yield a batch in halves of halves, until each has few bytes or is one row."""
    if batch.num_rows < 2 or _own_bytes(batch) <= PORTION:
        yield where, batch
        return
    half = batch.num_rows // 2
    yield from _split(where, batch.slice(0, half))
    yield from _split(where, batch.slice(half))


def _own_bytes(batch: pa.RecordBatch) -> int:
    """Return the bytes of a batch's rows, without the dictionaries that its slices share."""
    return int(batch.nbytes - batch.slice(0, 0).nbytes)


def _fit(first: pa.RecordBatch, second: pa.RecordBatch) -> bool:
    """Check whether two batches can be one: dictionaries would have to be made one first."""
    coded = any(pa.types.is_dictionary(kind) for kind in first.schema.types)
    return not coded and bool(first.schema.equals(second.schema))


def _joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)
