"""Columns checked: users and texts of one type each, and no row without a user."""

import difflib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.arrow import string_array
from voxpop.corpus.reading.failures import quieten
from voxpop.errors import ColumnError, InternalError, SourceError

Batches = Iterator[tuple[str, pa.RecordBatch]]
"""Where the rows come from, in words, and the rows."""
Rows = Iterator[tuple[str, pa.Array, pa.Array]]
"""Where rows come from, whose they are, and what they hold."""
Counted = Iterator[tuple[str, int, pa.RecordBatch]]
"""Where rows come from, how many of them went before, and the rows."""


def check_columns(wanted: list[str], existing: list[str], where: str) -> None:
    """Raise where a wanted column does not exist.

    Raises:
        ColumnError: naming the columns there are and the closest one, or one that is there twice.
    """
    for name in wanted:
        if name not in existing:
            close = difflib.get_close_matches(name, existing, n=1)
            hint = f' Did you mean "{close[0]}"?' if close else ""
            listed = ", ".join(f'"{each}"' for each in existing) or "none"
            raise ColumnError(f'{where} has no column "{name}"; it has {listed}.{hint}')
        if existing.count(name) > 1:
            raise ColumnError(f'{where} has {existing.count(name)} columns called "{name}"; rename all but one.')


def checked_users(batches: Batches, user: str) -> Counted:
    """Pass on batches whose users are of one type and never null, and how many rows of the same source went before."""
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
            f'{where}, row {row:,}: the column "{name}" is empty, so nobody knows whose row it is. '
            "Fill it in or leave the row out."
        )
    if pa.types.is_integer(ids.type):
        return ids.cast(pa.uint64() if ids.type == pa.uint64() else pa.int64())
    if is_string(ids.type):
        return valid_text(ids, where, name)
    raise InternalError("users must be whole numbers or strings by now; please report the call.")


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


def is_string(kind: pa.DataType) -> bool:
    """Tell whether a type is one of strings."""
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


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
        texts = texts.dictionary_decode()
    if pa.types.is_null(texts.type):
        return string_array([""] * len(texts))
    if not is_string(texts.type):
        raise ColumnError(
            f"{where}: text= needs a column of strings, got {texts.type}; for lists use tokens= or sequence=, for "
            "numbers items=."
        )
    return valid_text(texts, where, "text")
