"""The registry of file formats that other software reads, and the function `write`."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pyarrow as pa

from voxpop.errors import InputError
from voxpop.exports.libraries import joined_grams, spacy_texts, to_subword_tokenizer, to_tokenizer
from voxpop.exports.records import checklist, registry_record
from voxpop.exports.sql import to_sql
from voxpop.files.folder import write_file
from voxpop.privacy.budget import check_choice
from voxpop.reading.choices import Format, Subwords, TextTokenizer
from voxpop.reading.keys import spelled
from voxpop.release.counts import Addition, Counts
from voxpop.release.profile import Profile
from voxpop.release.release import Release
from voxpop.release.table import to_parquet, write_parquet

if TYPE_CHECKING:
    from voxpop.release.result import Result

SIGNS = r"[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b]"
"""The ASCII, full-width and small forms of the characters that begin formulas."""
_SKIPPED = r"[\s\"\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*"
"""Characters that a spreadsheet may remove or hide before the sign. These are spaces, quotes and zero-width
characters."""
FORMULA = re.compile(rf"(?:'|{_SKIPPED})*{SIGNS}|'*[\t\r\n]")
INNER = re.compile(rf"([;\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029])({_SKIPPED})('*{SIGNS})")
CONTROL = re.compile(r"[\x00-\x08\n-\x1f\x7f-\x9f\u2028\u2029]")
"""Line breaks, and the control characters of terminals."""


def as_text(release: "Release", _: Any = None) -> bytes:
    """Return a text with one gram per line and spaces between tokens.

    Raises:
        InputError: If a token contains a line break or another control character, or two grams produce the same line.
    """
    lines = joined_grams(release, "a text file")
    if any(map(CONTROL.search, lines)):
        raise InputError(
            "some released tokens contain line breaks or other control characters, which would break the lines of a "
            "text file and control a terminal. Write JSON instead."
        )
    return "".join(f"{line}\n" for line in lines).encode()


def as_json(release: "Release", _: Any = None) -> bytes:
    """Return a JSON object with the grams as lists of tokens, the guarantee and the plan."""
    content = {
        "statement": str(release.guarantee),
        "guarantee": release.guarantee.to_dict(),
        "plan": release.plan.to_dict(),
        "grams": [list(gram) for gram in release.each_gram()],
    }
    return (json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n").encode()


def as_csv(result: "Release | Profile | Addition", _: Any = None) -> bytes:
    """Return CSV with a header and the columns of `to_arrow`. Spaces separate the tokens of a gram.

    A profile has the columns `column` and `value` and, if there are counts, `users`, `low` and `high`. Joint values are
    joined with bars. Spreadsheets run strings that begin like a formula, so these strings get a leading apostrophe (see
    `guarded_cell`). Strings are quoted, so spreadsheets that also split at semicolons or tabs find the same cells.
    """
    table = result.to_arrow()
    if isinstance(result, Profile):
        columns: dict[str, list[Any]] = table.to_pydict()
    else:
        release, places = _release_of(result)
        joined = None if release.keys is not None else joined_grams(release, "a CSV file")
        columns = {
            name: [joined[place] for place in places] if joined is not None and name == "gram" else _cells(table[name])
            for name in table.column_names
        }
    sink = io.StringIO(newline="")
    rows = csv.writer(sink, lineterminator="\r\n", quoting=csv.QUOTE_NONNUMERIC)
    rows.writerow([guarded_cell(name) for name in columns])
    cells = ([guarded_cell(cell) if isinstance(cell, str) else cell for cell in each] for each in columns.values())
    rows.writerows(zip(*cells, strict=True))
    return sink.getvalue().encode()


def _release_of(result: "Release | Addition") -> tuple["Release", Iterable[int]]:
    """Return the release of a result, and the index of the release's row for each row of the result's table."""
    if isinstance(result, Addition):
        return result.rows, result._numbered[1].tolist()
    return result, range(len(result))


def guarded_cell(cell: str) -> str:
    """Return a string that no spreadsheet interprets as a formula.

    A string that begins with `=`, `+`, `-`, `@`, their full-width forms, a tab or a line break gets a leading
    apostrophe, even if spaces, quotes or invisible characters precede the sign. In many countries, spreadsheets split
    rows at semicolons, and some split at tabs. Therefore a sign after a semicolon, tab or line break gets an apostrophe
    too. A string that already looks like a result of this rule gets another apostrophe, so that `unguarded` returns the
    original string.

    Example:
        >>> guarded_cell("=1+1"), guarded_cell("'=1+1"), guarded_cell("'tis"), guarded_cell("a;=1+1")
        ("'=1+1", "''=1+1", "'tis", "a;'=1+1")
    """
    inner = INNER.sub(r"\1\2'\3", cell)
    return f"'{inner}" if FORMULA.match(cell) else inner


def unguarded(cell: str) -> str:
    """Return the original string from the result of `guarded_cell`.

    Example:
        >>> unguarded("'=1+1"), unguarded("'tis"), unguarded("a;'=1+1")
        ('=1+1', "'tis", 'a;=1+1')
    """
    begun = cell[1:] if cell.startswith("'") and FORMULA.match(cell[1:]) else cell
    return re.sub(INNER.pattern.replace("('*", "'('*"), r"\1\2\3", begun)


def _cells(column: Any) -> list[Any]:
    """Return the cells of a column. Numbers are unchanged, and all other values become strings."""
    plain = pa.chunked_array(column.chunks, column.type).combine_chunks()
    return list(plain.to_pylist() if pa.types.is_integer(plain.type) else spelled(plain, "key").to_pylist())


def as_arrow(result: "Release | Profile | Addition", _: Any = None) -> bytes:
    """Return an Arrow IPC file (Feather 2) with the columns of `to_arrow`."""
    sink = pa.BufferOutputStream()
    table = result.to_arrow()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    content: bytes = sink.getvalue().to_pybytes()
    return content


def as_parquet(result: "Release | Profile | Addition", _: Any = None) -> bytes:
    """Return a Parquet file with the columns of `to_arrow`."""
    return to_parquet(result.grams, result.keys) if isinstance(result, Release) else write_parquet(result.to_arrow())


def as_frequencies(counts: "Counts", _: Any = None) -> bytes:
    """Return one gram per line, followed by a tab and its noisy number of users, in descending order of users.

    Spelling correctors such as SymSpell read this format. Numbers below 1 become 1.

    Raises:
        InputError: If a token contains a line break or another control character, or two grams produce the same line.
    """
    as_text(counts.rows)  # This checks the tokens.
    return "".join(f"{' '.join(gram)}\t{max(1, users)}\n" for gram, users in counts.each_gram()).encode()


class Options(NamedTuple):
    """The options of formats.

    Attributes:
        tokenizer: The tokenizer for texts, for "tokenizer".
        dialect: The dialect of "sql".
        size: The maximum number of subwords of "bpe", "wordpiece" and "unigram".
    """

    tokenizer: TextTokenizer | None = "words"
    dialect: str = "duckdb"
    size: int = 8000


@dataclass(frozen=True, slots=True)
class Export:
    """A file format.

    Attributes:
        name: The name in calls and on the command line.
        make: A function that returns the content of the file.
        suffixes: The suffixes of file names that select the format.
        counted: Whether the format is made from counts (a `Counts`) instead of a release.
        general: Whether the format is made from any result.
        table: Whether the format is a table, which is also made from counts and rankings.
    """

    name: Format
    make: Callable[[Any, Options], bytes]
    suffixes: tuple[str, ...] = ()
    counted: bool = False
    general: bool = False
    table: bool = False


def _vocabulary(release: "Release", _: Options) -> bytes:
    numbers = {gram: number for number, gram in enumerate(joined_grams(release, "a vocabulary"))}
    return (json.dumps(numbers, ensure_ascii=False, indent=0) + "\n").encode()


def _tokenizer(release: "Release", options: Options) -> bytes:
    return cast(str, to_tokenizer(release, options.tokenizer).to_str(pretty=True)).encode()


def _spacy(release: "Release", _: Options) -> bytes:
    patterns = ({"label": "released", "pattern": text} for text in spacy_texts(release))
    return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in patterns).encode()


def _sql(result: "Release | Addition", options: Options) -> bytes:
    release, _ = _release_of(result)
    columns = None if release.keys is None or release.keys.columns else "word"
    return f"{to_sql(result, options.dialect, 'select', columns)}\n".encode()


def _subwords(model: Subwords) -> Callable[["Counts", Options], bytes]:
    return lambda counts, options: to_subword_tokenizer(counts, model, options.size).to_str(pretty=True).encode()


def _document(make: Callable[["Result"], str]) -> Callable[["Result", Options], bytes]:
    return lambda result, _: make(result).encode()


EXPORTS = (
    Export("text", as_text, (".txt",)),
    Export("json", as_json, (".json",)),
    Export("csv", as_csv, (".csv",), table=True),
    Export("arrow", as_arrow, (".arrow", ".feather"), table=True),
    Export("parquet", as_parquet, (".parquet",), table=True),
    Export("sql", _sql, (".sql",), table=True),
    Export("vocabulary", _vocabulary),
    Export("tokenizer", _tokenizer),
    Export("spacy", _spacy),
    Export("registry", _document(registry_record), general=True),
    Export("checklist", _document(checklist), general=True),
    Export("frequencies", as_frequencies, counted=True),
    Export("bpe", _subwords("bpe"), counted=True),
    Export("wordpiece", _subwords("wordpiece"), counted=True),
    Export("unigram", _subwords("unigram"), counted=True),
)
"""The formats, which docs/guides/exports.md describes. The command line and the tests are derived from this
registry."""


def write(
    result: "Result",
    path: str | PathLike[str],
    format: Format | None = None,
    *,
    tokenizer: TextTokenizer | None = "words",
    dialect: str = "duckdb",
    size: int = 8000,
    overwrite: bool = False,
) -> None:
    """Write a release, or a tokenizer trained on counts, to one file, completely or not at all.

    Args:
        result: A release. The tables "csv", "arrow", "parquet" and "sql" also accept the counts or the ranking of a
            release, and "csv", "arrow" and "parquet" also accept a profile, for example for a dbt seed. The formats
            "frequencies", "bpe", "wordpiece" and "unigram" need the counts of a release. The formats "registry" and
            "checklist" accept any result.
        path: The file.
        format: A name from the registry `EXPORTS`. By default the suffix of the file name determines the format.
        tokenizer: The tokenizer for texts, for "tokenizer".
        dialect: The dialect of "sql", as for `to_sql`.
        size: The maximum number of subwords, as for `to_subword_tokenizer`.
        overwrite: Whether to replace an existing file.

    Raises:
        InputError: If the format is unknown or cannot contain these grams, or its library is not installed.
        ReleaseError: If the file exists or cannot be written.
    """
    export = export_for(Path(path), format)
    if export.counted and not isinstance(result, Counts):
        raise InputError(f'"{export.name}" is made from counts. Count the release first, and write the counts.')
    tabular = export.table and isinstance(result, Addition if export.make is _sql else Addition | Profile)
    if not (export.counted or export.general or tabular or isinstance(result, Release)):
        advice = "Write csv, arrow or parquet"
        advice += ", or a column of `profile.columns`." if isinstance(result, Profile) else ", which have its numbers."
        raise InputError(f'"{export.name}" is a format for releases and must not be made from this result. {advice}')
    write_file(path, lambda: export.make(result, Options(tokenizer, dialect, size)), overwrite=overwrite)


def export_for(path: Path, name: str | None = None) -> Export:
    """Return the format with a name, or for the suffix of a file name.

    Raises:
        InputError: If there is no such format, or no format has this suffix.
    """
    by_name = {each.name: each for each in EXPORTS}
    if name is not None:
        check_choice("format", name, tuple(by_name))
        return by_name[cast(Format, name)]
    suffixes = {suffix: each for each in EXPORTS for suffix in each.suffixes}
    if path.suffix.lower() not in suffixes:
        raise InputError(
            f"the suffix of {path.name} is not the suffix of a format. Name the format, one of {', '.join(by_name)}, "
            f"or end the name in {', '.join(suffixes)}."
        )
    return suffixes[path.suffix.lower()]
