"""Conversion of rows to typed keys. Each value of a column, word of a text and joint value becomes one token.

A key belongs to a set, which is a column or a combination of columns. The token of a key consists of the number of the
set and the spelled values, separated by bars, like composite items (`voxpop.reading.keys`). Bars and backslashes in
values are escaped, and all keys of a set have the same number of values, so no two keys have the same token. Tokens do
not contain the names and types of columns, because sets are numbered in the order of the public schema.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import prod
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError, InputError
from voxpop.kernels.arrays import Bools, Int32s, Int64s
from voxpop.reading.arrow import array_of, flattened, int64_array, numbers_of
from voxpop.reading.columns import text_column
from voxpop.reading.keys import NO_KEYS, KeyColumn, Keys, joined_texts, plain_type, spelled, split_texts
from voxpop.reading.segmenting import check_icu
from voxpop.reading.tokenizers import list_tokeniser
from voxpop.reading.words import WordInterner

MOST_SETS: Final = 10_000
"""The maximum number of columns and combinations of columns of one table."""
MOST_CANDIDATES: Final = 1 << 27
"""The maximum number of joint tokens of a release. Noise for more tokens would take too long. Plans are charged for
2^31 decisions."""
_KEYS_AT_ONCE: Final = 1 << 16
"""The number of joint tokens that are constructed at once."""
Coded = tuple[Int64s, Int64s, pa.LargeStringArray]
"""The codes of all values of a set in the order of rows, the number of values of each row, and the distinct values by
code."""


@final
@dataclass(frozen=True)
class TypedKeys:
    r"""The sets of a table.

    Attributes:
        columns: The names and types of the columns. Texts have the type string.
        texts: The names of the text columns. Their words are keys.
        joint: The combinations of column names that are also released jointly.
        alone: Whether only the combinations are keys. In this case, a combination may consist of one column.

    Raises:
        InputError: A set has no columns, repeats a column, or contains a text or an unknown column.

    Example:
        >>> keys = TypedKeys((KeyColumn("city", "string"), KeyColumn("year", "int64")), joint=(("city", "year"),))
        >>> rows = keys.tokens([pa.array(["Delft", "a|b"]), pa.array([7, None])])
        >>> rows.to_pylist()
        [['0|Delft', '1|7', '2|Delft|7'], ['0|a\\|b']]
    """

    columns: tuple[KeyColumn, ...]
    texts: tuple[str, ...] = ()
    joint: tuple[tuple[str, ...], ...] = ()
    alone: bool = False

    def __post_init__(self) -> None:
        if len(self.sets) > MOST_SETS:
            raise InputError(
                f"a profile has at most {MOST_SETS:,} columns and combinations, got {len(self.sets):,}. Name the "
                'combinations, such as joint=[("country", "city")].'
            )
        if len({" x ".join(map(str, names)) for names in self.sets}) < len(set(self.sets)):
            raise InputError(
                'two sets of columns would have the same name in the result, where names are joined by " x ". Rename a '
                "column whose name contains it."
            )
        seen = set[tuple[str, ...]]()
        for names in self.joint:
            if (problem := self._problem(names)) or names in seen:
                entry = ", ".join(f'"{name}"' for name in names[:20])
                raise InputError(
                    f"each entry of `joint` must list {'' if self.alone else 'two or more '}different columns of the "
                    f"profile that are not texts, but ({entry}) {problem or 'occurs twice. Remove one of the two'}."
                )
            seen.add(names)

    def _problem(self, names: tuple[str, ...]) -> str | None:
        """Return why a combination is invalid, with the next step, or None if it is valid."""
        keyed = [each.name for each in self.columns if each.name not in self.texts]
        for name in names:
            if name in self.texts:
                return f'contains "{name}", which is a text column. Remove it'
            if name not in keyed:
                return f'contains "{name}". Choose from {", ".join(keyed[:20]) or "none"}'
        if len(set(names)) < len(names):
            return "contains a column twice. Name it once"
        if not names:
            return "is empty. Name its columns, or remove it"
        if len(names) == 1 and not self.alone:
            return "contains only one column, which the profile releases anyway. Remove it, or add a column"
        return None

    @cached_property
    def sets(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each set, by the index of the set."""
        if self.alone:
            return self.joint
        return (*((each.name,) for each in self.columns), *self.joint)

    @cached_property
    def names(self) -> dict[str, int]:
        """The index of each column."""
        return {each.name: number for number, each in enumerate(self.columns)}

    @cached_property
    def token_source(self) -> str:
        """The beginning of the `reading` of a corpus of these keys, before the name of the tokenizer for texts."""
        sets = (self.columns, self.texts, self.joint, *(["alone"] if self.alone else []))
        return f"typed keys {sha256(repr(sets).encode()).hexdigest()[:16]}: "

    def keys_of(self, number: int) -> Keys:
        """Return the names and types of the values of a set, or an empty tuple for words."""
        names = self.sets[number]
        return NO_KEYS if names[0] in self.texts else Keys(tuple(self.columns[self.names[each]] for each in names))

    def tokens(self, arrays: Sequence[pa.Array], tokenizer: Any = "words") -> pa.Array:
        """Return the list of tokens of each row. Null has no token.

        Args:
            arrays: The values of each column.
            tokenizer: The tokenizer for texts.

        Raises:
            ColumnError: A value does not have the type of its column.
        """
        singles = [
            _words(array, tokenizer) if each.name in self.texts else _values(array, each)
            for array, each in zip(arrays, self.columns, strict=True)
        ]
        joint = [
            singles[self.names[names[0]]]
            if len(names) == 1
            else _together([singles[self.names[each]] for each in names])
            for names in self.joint
        ]
        every = joint if self.alone else [*singles, *joint]
        sizes = np.sum([size for _, size, _ in every], axis=0, dtype=np.int64)
        ends = np.concatenate([[0], np.cumsum(sizes)])
        # int64 (rows), the position of the next token of each row.
        place, codes, first = ends[:-1].copy(), np.empty(int(ends[-1]), np.int32), 0
        for own, size, words in every:
            starts = np.cumsum(size) - size
            codes[np.repeat(place - starts, size) + np.arange(own.size)] = own + first
            place += size
            first += len(words)
        texts = [
            _numbered(number, words, joint=len(names) > 1)
            for number, (names, (*_, words)) in enumerate(zip(self.sets, every, strict=True))
        ]
        coded = pa.DictionaryArray.from_arrays(array_of(codes), pa.concat_arrays(texts))
        return pa.LargeListArray.from_arrays(int64_array(ends), coded)

    def listed(self, column: str, items: pa.LargeStringArray) -> pa.LargeStringArray:
        """Return the tokens of values of one column.

        Args:
            column: The column.
            items: The values of the column as `voxpop.reading.keys` spells them, or the words of a text column.
        """
        return _numbered(self.names[column], items)

    def split(self, tokens: pa.LargeStringArray) -> tuple[Int32s, pa.LargeStringArray]:
        """Return the set number and the item of each token.

        Raises:
            ValueError: A string is not a token.
        """
        parts = pc.split_pattern(tokens, "|", max_splits=1)
        if len(tokens) and pc.min(pc.list_value_length(parts)).as_py() < 2:
            raise ValueError("not a token")
        numbers = numbers_of(pc.list_element(parts, 0).cast(pa.int32()))
        rest = pc.list_element(parts, 1)
        alone = np.array([len(names) == 1 for names in self.sets], np.uint8)
        single = array_of(alone[numbers]).cast(pa.bool_())
        return numbers, pc.if_else(single, pc.replace_substring_regex(rest, r"(?s)\\(.)", r"\1"), rest)

    def chosen(self, tokens: pa.LargeStringArray, listed: pa.LargeStringArray | None) -> Bools:
        """Return a mask of single tokens or, with a list, of joint tokens that have all their values on the list."""
        numbers, items = self.split(tokens)
        if listed is None:
            return np.asarray(numbers < len(self.columns))
        found, sizes = np.zeros(len(tokens), np.bool_), self.sizes(listed)
        for number, names in enumerate(self.joint, start=len(self.columns)):
            mine = np.flatnonzero(numbers == number) if names in sizes else np.empty(0, np.int64)
            parts = split_texts(items.take(int64_array(mine)), len(names))
            known = [
                numbers_of(pc.is_in(_numbered(self.names[name], texts), value_set=listed).cast(pa.int8())) > 0
                for name, texts in zip(names, parts, strict=True)
            ]
            found[mine] = np.logical_and.reduce(known)
        return found

    def sizes(self, listed: pa.LargeStringArray) -> dict[tuple[str, ...], int]:
        """Return the number of candidates of each combination, without combinations that have too many candidates."""
        numbers, _ = self.split(listed)
        return self.sizes_of(np.bincount(numbers, minlength=len(self.columns)).tolist())

    def sizes_of(self, values: Sequence[int]) -> dict[tuple[str, ...], int]:
        """Return the result of `sizes`, computed from the number of released values of each column."""
        found, left = dict[tuple[str, ...], int](), MOST_CANDIDATES
        for names in self.joint:
            size = prod(values[self.names[name]] for name in names)
            if size <= left:
                found[names] = size
                left -= size
        return found

    def candidates(self, listed: pa.LargeStringArray) -> Iterator[pa.LargeStringArray]:
        """Yield, in parts, the joint tokens with all their single values on a list (see `sizes`)."""
        (numbers, items), sizes = self.split(listed), self.sizes(listed)
        single = [items.take(int64_array(np.flatnonzero(numbers == number))) for number in range(len(self.columns))]
        for number, names in enumerate(self.joint, start=len(self.columns)):
            values, size = [single[self.names[name]] for name in names], sizes.get(names, 0)
            for first in range(0, size, _KEYS_AT_ONCE):
                places = np.unravel_index(
                    np.arange(first, min(size, first + _KEYS_AT_ONCE)), [len(own) for own in values]
                )
                texts = [own.take(int64_array(place)) for own, place in zip(values, places, strict=True)]
                yield _numbered(number, joined_texts(texts), joint=True)


def column_numbers(tokens: pa.LargeStringArray, columns: int) -> Int32s:
    """Return the index of the column of each token, or -1 for joint tokens."""
    numbers = numbers_of(pc.list_element(pc.split_pattern(tokens, "|", max_splits=1), 0).cast(pa.int32()))
    return np.where(numbers < columns, numbers, -1).astype(np.int32)


def _numbered(number: int, words: pa.Array, *, joint: bool = False) -> pa.LargeStringArray:
    prefix = pa.scalar(str(number), pa.large_string())
    escaped = words if joint else joined_texts([words])
    return pc.binary_join_element_wise(prefix, escaped.cast(pa.large_string()), pa.scalar("|", pa.large_string()))


def _values(array: pa.Array, column: KeyColumn) -> Coded:
    kind = plain_type(array.type)
    # Other types of the same family are rejected too, because values of a wider type could not be returned in the
    # planned type.
    if not pa.types.is_null(array.type) and kind != column.type:
        raise ColumnError(
            f'the column "{column.name}" contains {kind}, and {column.kind} was planned. Declare its type.'
        )
    coded = spelled(array, column.name).dictionary_encode()
    codes = numbers_of(coded.indices, missing=-1).astype(np.int64)
    return codes[codes >= 0], (codes >= 0).astype(np.int64), coded.dictionary


def _words(array: pa.Array, tokenizer: Any) -> Coded:
    texts, as_lists = text_column(array, "the table"), list_tokeniser(tokenizer)
    if as_lists is None:
        check_icu()
        interner = WordInterner()
        ids, ends = interner.cut(texts)
        # Each text is followed by -1.
        return ids[ids >= 0].astype(np.int64), np.diff(ends) - 1, interner.vocabulary()
    words, sizes = flattened(as_lists(texts.fill_null("")))
    coded = words.dictionary_encode()
    return numbers_of(coded.indices).astype(np.int64), sizes, coded.dictionary


def _together(parts: Sequence[Coded]) -> Coded:
    """Return the joint values of rows that have a value in each part."""
    held = np.logical_and.reduce([size > 0 for _, size, _ in parts])
    joint = np.zeros(int(held.sum()), np.int64)
    members = []
    for codes, size, words in parts:
        mine = codes[held[size > 0]]
        members.append((mine, words))
        # Codes are numbered again from 0, so that products remain small.
        joint = np.unique(joint * max(1, len(words)) + mine, return_inverse=True)[1].astype(np.int64)
    _, first = np.unique(joint, return_index=True)
    texts = [words.take(int64_array(mine[first])) for mine, words in members]
    return joint, held.astype(np.int64), joined_texts(texts)
