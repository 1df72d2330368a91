"""Public lists of items that need no discovery, such as the words of a language, month names and ISO codes.

A list is public, so it must not be derived from the private data. The guide to lists is docs/guides/known.md.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Union, final

import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import InputError, SourceError, required
from voxpop.files.folder import lines_of
from voxpop.kernels.threads import in_order
from voxpop.privacy.budget import check_choice
from voxpop.privacy.parameters import KnownList
from voxpop.reading.arrow import joined, string_array, text_buffers
from voxpop.reading.keys import NO_KEYS, Keys, joined_texts, spelled_rows, split_texts
from voxpop.reading.one_text import REGEX, TOKENIZER_NAMES
from voxpop.reading.tokenizers import single_tokens
from voxpop.reading.typed_keys import TypedKeys
from voxpop.reading.types import array_of_items, not_items
from voxpop.release.counts import Counts, Top
from voxpop.release.profile import Profile
from voxpop.release.release import Release
from voxpop.release.result import load

__all__ = ["KnownItems", "countries", "languages", "months", "words"]

Known = Union["KnownItems", Release, Counts, Top, str, PathLike[str], Iterable[Any]]
"""The types that `Items(known=...)` accepts."""
_LIST_FILES = {
    ".parquet": "read_parquet",
    ".csv": "read_csv",
    ".tsv": "read_csv",
    ".arrow": "read_ipc",
    ".feather": "read_ipc",
}
"""The polars function for each suffix of files with columns. All other files contain lines of text."""
_LIST_PART = 1 << 17
"""The number of items of a list that are tokenized or compared at once."""
_MOST_KEPT = 1 << 20
"""The maximum size of a list for which tokens are kept until the next release, because they take memory."""


@final
@dataclass(frozen=True, slots=True, repr=False)
class KnownItems:
    """A public list of items. Two lists are equal if they have the same fingerprint.

    Attributes:
        size: The number of different items.
        fingerprint: The SHA-256 digest of the items in the order of their bytes.
        width: The number of columns of an item, which is 1 for words.
        names: The names of the columns of a table or of the keys of a release. Other lists have no names.
        items: large_string, the items as `voxpop.reading.keys` spells them, distinct and in the order of their bytes;
            None for the list of a saved plan, which contains only the other fields.

    Example:
        >>> KnownItems.of(["tea", "milk", "tea"]).size
        2
    """

    size: int
    fingerprint: str
    width: int
    items: pa.LargeStringArray | None = field(compare=False)
    names: tuple[str, ...] = field(default=(), compare=False)
    _tokens: dict[str, pa.LargeStringArray] = field(default_factory=dict, init=False, compare=False)

    @staticmethod
    def of(given: Any) -> "KnownItems":
        """Return the list for any permitted value of `known`.

        Raises:
            InputError: The list has the wrong type, or is empty.
            SourceError: The file cannot be read.
        """
        if isinstance(given, KnownItems):
            return given
        if isinstance(given, Mapping):
            if not _is_saved(given):
                raise InputError(
                    "`known` must be one list, not a dictionary. Give the columns of a key as a table, such as a "
                    "DataFrame."
                )
            return KnownItems(int(given["size"]), str(given["fingerprint"]), int(given["columns"]), None)
        items, names, width = _spelled_list(given)
        items = _distinct_items(items)
        if not len(items):
            raise InputError("`known` must contain at least one item. Omit it if there is no list.")
        letters, starts = text_buffers(items)
        digest = sha256(width.to_bytes(8, "little"))
        digest.update((starts - starts[0]).tobytes())
        digest.update(letters[starts[0] : starts[-1]].tobytes())
        return KnownItems(len(items), f"sha256:{digest.hexdigest()}", width, items, names)

    def __repr__(self) -> str:
        return f"KnownItems({self.size:,} items, {self.fingerprint})"

    def to_dict(self) -> dict[str, Any]:
        """Return the size, fingerprint and number of columns for JSON."""
        return {"size": self.size, "fingerprint": self.fingerprint, "columns": self.width}

    @property
    def listed(self) -> "KnownList":
        """The numbers that describe the list in a certificate."""
        return KnownList(self.size, self.fingerprint)

    @property
    def given(self) -> pa.LargeStringArray:
        """The items as they were given.

        Raises:
            InputError: The list is from a saved plan.
        """
        if self.items is None:
            raise InputError(
                "the items of `known` are unknown, because the plan was loaded from a file. Give the list again."
            )
        return self.items

    def check(self, keys: Keys) -> None:
        """Reject data with items that cannot be on the list.

        Args:
            keys: The columns of the items of the data.

        Raises:
            InputError: The list is from a saved plan, or its items have other columns or types than the items of the
                data.
        """
        items, wanted = self.given, max(1, len(keys.columns))
        if self.width != wanted:
            raise InputError(
                f"`known` has {self.width} column{'s' * (self.width > 1)}, and the items of the data have {wanted}. "
                "Give a table with the columns of the items."
            )
        self._in_another_order(keys)
        try:
            self._spelled(items, keys)
        except ValueError:
            raise InputError(
                "`known` has values that the columns of the items cannot contain. Give a table with columns of the "
                "same names and types."
            ) from None

    def _spelled(self, given: pa.LargeStringArray, keys: Keys) -> pa.LargeStringArray:
        """Return the distinct items in the spelling of the data (see `Keys.respelled`)."""
        name = f"types {[(each.name, each.kind) for each in keys.columns]}"
        items = self._tokens.get(name)
        if items is None:
            if self._in_another_order(keys):
                texts = dict(zip(self.names, split_texts(given, self.width), strict=True))
                given = joined_texts([texts[each] for each in keys.names])
            items = keys.respelled(given)
            if self.size <= _MOST_KEPT:
                self._tokens[name] = items
        return items

    def _in_another_order(self, keys: Keys) -> bool:
        """Return whether the columns of the list must be reordered to match the columns of the data.

        Raises:
            InputError: If only some of the names are columns of the data.
        """
        if self.width == 1 or not {*self.names} & {*keys.names}:
            return False
        if {*self.names} != {*keys.names}:
            raise InputError(
                "`known` has some columns of the items, but not exactly these columns. Give a table with the columns "
                f"{', '.join(keys.names[:20])}."
            )
        return self.names != tuple(keys.names)

    def parts(self, kind: str, reading: str, keys: Keys) -> list[pa.LargeStringArray]:
        """Return, in parts, the distinct items in the form that the tokenizer of the data gives them.

        A text that does not become exactly one token cannot be an item of the data, so it is omitted.

        Args:
            kind: The kind of the data, "text", "tokens", "items" or "sequence".
            reading: The origin of the tokens of the data. A tokenizer without a name is not applied here.
            keys: The columns of the items of the data.

        Raises:
            InputError: See `check`.
        """
        self.check(keys)
        items: Any = self._spelled(self.given, keys)
        if kind == "text" and (reading in TOKENIZER_NAMES or reading.startswith(REGEX)):
            items = self._tokens.get(reading)
            if items is None:
                # The items are not sorted here, because only the fingerprint needs an order.
                found = list(in_order(single_tokens(reading), _in_parts(self.items)))
                items = pc.unique(joined(pa.chunked_array(found)))
            if self.size <= _MOST_KEPT:
                self._tokens[reading] = items
        return list(_in_parts(items))


@final
@dataclass(frozen=True, slots=True, repr=False)
class KnownColumns:
    """The public lists of columns of a profile, which together form one list of typed keys.

    Attributes:
        size: The total number of items in all lists.
        fingerprint: The SHA-256 digest of the names of the columns and of the fingerprints of their lists.
        sizes: The number of items of each column.
        lists: The list of each column. A saved plan has no lists.

    Example:
        >>> from voxpop.reading.keys import KeyColumn
        >>> keys = TypedKeys((KeyColumn("city", "string"),))
        >>> KnownColumns.of({"city": ["Delft", "Lund"]}, keys).size
        2
    """

    size: int
    fingerprint: str
    sizes: Mapping[str, int]
    lists: Mapping[str, KnownItems] = field(compare=False)

    @staticmethod
    def of(given: Any, keys: TypedKeys) -> "KnownColumns":
        """Return the lists for any permitted value of `known` in a profile.

        Raises:
            InputError: A name has no list, a name is not a column, or values do not fit their column.
        """
        if isinstance(given, KnownColumns):
            return given
        if not isinstance(given, Mapping) or not given:
            raise InputError('`known` must be a dictionary from columns to lists, such as known={"city": ["Delft"]}.')
        if _is_saved(given):
            return KnownColumns(int(given["size"]), given["fingerprint"], dict(given["columns"]), {})
        types = {each.name: each for each in keys.columns}
        for name in given:
            if name not in types:
                raise InputError(
                    f'`known` names "{name}", which is not a column of the profile. Choose from '
                    f"{', '.join(list(types)[:20])}."
                )
        lists = {name: _list_of(name, each) for name, each in sorted(given.items())}
        for name, each in lists.items():
            try:
                each._spelled(each.given, keys.keys_of(keys.names[name]))
            except ValueError:
                raise InputError(
                    f'the list of "{name}" has values that do not have the column type. Give values of this type.'
                ) from None
        digest = sha256(json.dumps([[name, each.fingerprint] for name, each in lists.items()]).encode())
        sizes = {name: each.size for name, each in lists.items()}
        return KnownColumns(sum(sizes.values()), f"sha256:{digest.hexdigest()}", sizes, lists)

    def to_dict(self) -> dict[str, Any]:
        """Return the size, fingerprint and sizes of the lists for JSON."""
        return {"size": self.size, "fingerprint": self.fingerprint, "columns": dict(self.sizes)}

    @property
    def listed(self) -> KnownList:
        """The numbers that describe the lists in a certificate."""
        return KnownList(self.size, self.fingerprint)

    def check(self) -> None:
        """Raise an error if the items of the lists are unknown, because the plan was loaded from a file."""
        if not self.lists:
            raise InputError(
                "the items of `known` are unknown, because the plan was loaded from a file. Give the lists again."
            )

    def parts(self, keys: TypedKeys, reading: str) -> list[pa.LargeStringArray]:
        """Return, in parts, the distinct typed keys of the lists.

        Args:
            keys: The columns of the profile.
            reading: The tokenizer for texts.
        """
        found = list[pa.LargeStringArray]()
        for name, each in self.lists.items():
            kind, column = "text" if name in keys.texts else "items", keys.keys_of(keys.names[name])
            found += [keys.listed(name, part) for part in each.parts(kind, reading, column)]
        return found


def _list_of(name: str, given: Any) -> KnownItems:
    """Return the list of a column. Errors name the column."""
    try:
        listed = KnownItems.of(given)
        listed.check(NO_KEYS)
        return listed
    except (InputError, SourceError) as error:
        raise type(error)(f'the list of the column "{name}" is not usable: {error}') from None


def _is_saved(given: Mapping[str, Any]) -> bool:
    """Return whether a dictionary contains the numbers of a saved plan instead of lists by column."""
    return {"size", "fingerprint", "columns"} <= {*given} and isinstance(given["size"], int)


def _in_parts(items: pa.LargeStringArray) -> Iterable[pa.LargeStringArray]:
    return (items.slice(first, _LIST_PART) for first in range(0, max(len(items), 1), _LIST_PART))


def _distinct_items(items: pa.Array) -> pa.LargeStringArray:
    """Return distinct strings in the order of their bytes, without nulls."""
    import polars as pl

    items = pl.Series(values=items, dtype=pl.String).drop_nulls().unique().sort().to_arrow()
    return items.cast(pa.large_string())


def _spelled_list(given: Any) -> tuple[pa.LargeStringArray, tuple[str, ...], int]:
    """Return the items of a list, with repetitions, and the names and the number of their columns."""
    if isinstance(given, Profile):
        raise InputError(
            'a profile has several columns. Give one of them as `known`, such as profile.columns["shop"], or '
            'profile.joint[("shop", "country")].'
        )
    if isinstance(given, Counts | Top):
        given = given.grams
    if isinstance(given, Release):
        single = given.grams.filter(pc.equal(given.grams["length"], 1))
        items = joined(single["gram"].combine_chunks().flatten() if len(single) else pa.array([], pa.large_string()))
        names = tuple(given.keys.names) if given.keys else ()
        return items.cast(pa.large_string()), names, max(1, len(names))
    if isinstance(given, str | PathLike):
        path = Path(given)
        if path.is_dir():
            return _spelled_list(load(path))
        given = _list_file(path) if path.suffix.lower() in _LIST_FILES else _list_lines(path)
    columns, names = _list_columns(given)
    return spelled_rows(columns, ["known"] * len(columns)), names, len(columns)


def _list_file(path: Path) -> Any:
    import polars as pl

    name, settings = _LIST_FILES[path.suffix.lower()], {}
    if name == "read_csv":
        settings = {"infer_schema": False, "separator": "\t" if path.suffix.lower() == ".tsv" else ","}
    try:
        return getattr(pl, name)(path, **settings)
    except (OSError, pl.exceptions.PolarsError):
        raise SourceError(
            f"{path} cannot be read as a list of items. It must be a table of that type with the columns of the items, "
            "or a text file in UTF-8 with one item per line."
        ) from None


def _list_lines(path: Path) -> pa.ChunkedArray:
    """Return the lines of a file without creating Python strings for all lines at once."""
    return pa.chunked_array([string_array(part) for part in lines_of(path, _LIST_PART)], pa.large_string())


def _list_columns(given: Any) -> tuple[list[pa.Array], tuple[str, ...]]:
    """Return the columns of a table, a column, or a list of values or of tuples, and the names if they have names."""
    wrong = InputError(
        "`known` must be a list of items, a table, a release, or the path of a file or of a saved release, got "
        f"{type(given).__name__}. Items are strings, or values of one type such as whole numbers or dates; items of "
        "several columns are tuples."
    )
    try:
        if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
            table = _arrow_table(given)
            return [joined(each) for each in table.columns], tuple(table.column_names)
        if isinstance(given, bytes) or not isinstance(given, Iterable):
            raise wrong
        values = list(given)
        if values and isinstance(values[0], tuple | list):
            if len({len(each) if isinstance(each, tuple | list) else -1 for each in values}) > 1:
                raise not_items("tuples of different lengths, or tuples and other values")
            return [array_of_items(list(column)) for column in zip(*values, strict=True)], ()
        return [array_of_items(values)], ()
    except InputError:
        raise
    except (pa.ArrowException, TypeError, ValueError):
        raise wrong from None


def _arrow_table(given: Any) -> pa.Table:
    """Return any Arrow object as a table."""
    try:
        return pa.table(given)
    except (TypeError, ValueError, pa.ArrowException):
        return pa.table({"known": pa.chunked_array(given)})


# Ready-made lists.


def words(language: str = "en", size: Literal["small", "large"] = "large") -> list[str]:
    """Return the words of a language.

    The list is from the package `wordfreq` 3.1 (`pip install wordfreq`). This package no longer changes, so every
    installation has the same list. The code of the package is licensed under Apache-2.0, and its data under CC BY-SA
    4.0.

    Args:
        language: Two letters, such as "en". About forty languages are available.
        size: "large" has 321,180 English words, and "small" about 29,000. Some languages have only one of the two
            sizes.

    Returns:
        The words in lower case.

    Raises:
        InputError: The package is missing or has no list of this language and size.

    Example:
        >>> import voxpop as vp
        >>> words = vp.known.words("en")
        >>> "tea" in words, len(words)
        (True, 321180)
    """
    package = required("wordfreq", "this list", "wordfreq")
    check_choice("size", size, ("small", "large"))
    sizes = package.available_languages(size)
    if language not in sizes:
        raise InputError(
            f"there is no {size} list of words for the language {language!r}. The languages of {size} lists are "
            f"{', '.join(sorted(sizes))}."
        )
    return list(package.iter_wordlist(language, size))


def months(language: str = "en") -> list[str]:
    """Return the full and abbreviated names of the months from the package `babel` (BSD licence).

    Args:
        language: The language, such as "en" or "pt_BR".

    Raises:
        InputError: The package is missing or does not support the language.

    Example:
        >>> import voxpop as vp
        >>> vp.known.months()[:2]
        ['January', 'February']
    """
    package = required("babel", "this list", "babel")
    try:
        names = package.Locale.parse(language).months["format"]
    except (ValueError, TypeError, package.UnknownLocaleError):
        raise InputError(
            f"there are no names of months for the language {language!r}. Give a code such as en."
        ) from None
    return list(dict.fromkeys(str(name) for width in ("wide", "abbreviated") for name in names[width].values()))


def countries(form: Literal["codes", "names"] = "codes") -> list[str]:
    """Return the countries of ISO 3166-1 from the package `pycountry` (LGPL 2.1).

    Args:
        form: "codes" of two letters such as "NL", or English "names".

    Raises:
        InputError: The package is missing.

    Example:
        >>> import voxpop as vp
        >>> len(vp.known.countries()), "NL" in vp.known.countries()
        (249, True)
    """
    return _iso("countries", form)


def languages(form: Literal["codes", "names"] = "codes") -> list[str]:
    """Return the languages of ISO 639 that have a two-letter code, from the package `pycountry` (LGPL 2.1).

    Args:
        form: "codes" of two letters such as "nl", or English "names".

    Raises:
        InputError: The package is missing.

    Example:
        >>> import voxpop as vp
        >>> "nl" in vp.known.languages(), "Dutch" in vp.known.languages("names")
        (True, True)
    """
    return _iso("languages", form)


def _iso(what: str, form: str) -> list[str]:
    check_choice("form", form, ("codes", "names"))
    rows = [each for each in getattr(required("pycountry", "this list", "pycountry"), what) if hasattr(each, "alpha_2")]
    return sorted({each.alpha_2 if form == "codes" else each.name for each in rows})
