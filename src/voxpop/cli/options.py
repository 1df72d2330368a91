"""Groups of command-line options. Each dataclass is one parameter of a command, and its fields are the options."""

import os
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, make_dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter
from cyclopts.validators import Number

import voxpop as vp
from voxpop.cli.sources import CONTENTS, check_path, is_event_log, missing_column
from voxpop.errors import InputError, InternalError
from voxpop.privacy.budget import Budget

_REGEX = "regex:"
DATABASE_VARIABLE = "VOXPOP_DATABASE"
"""The environment variable with the address of the database of `--sql`."""
COUNTED = Number(gte=0)


def _group(title: str, order: int) -> Parameter:
    return Parameter(name="*", group=Group(title, sort_key=order))


@dataclass(frozen=True, kw_only=True)
class TableArguments:
    """The private table, and how its rows are read.

    Attributes:
        user: Column that identifies the user; required. If several columns identify each user, repeat the option or
            separate the names with commas.
        text: Text column, which is split into words.
        tokens: Column of lists of words.
        items: Column of items, or of lists of items. For a composite key, repeat the option or separate the names with
            commas.
        sequence: Column of ordered lists or, with --order, of single events.
        order: Time column. Each row is then one event.
        session_gap: Longest pause within a sequence, such as 30min.
        types: Types for columns without a declared type, such as price=decimal(12,2). Repeat the option.
        tokenizer: Method for splitting texts: words, whitespace, characters or regex:PATTERN.
        sentences: Split texts into sentences first, so that no phrase spans two sentences.
        html: Treat texts as HTML.
        delimiter: Separator of CSV columns, or "tab". Detected by default. With this option, files with unknown
            suffixes are read as CSV.
        encoding: Encoding of CSV files, such as cp1252. The default is UTF-8.
        quote: The quote character of CSV cells, or "none" if quotes are plain characters.
        escape: Pass a backslash if backslashes precede quotes within quoted CSV cells, as in files written by Spark and
            MySQL.
        sql: Query that selects the columns, instead of files. The query runs on --database.
        database: Address for --sql, such as postgresql://host/name, sqlite:///file.db or duckdb:///file.duckdb. The
            default is the environment variable VOXPOP_DATABASE.
    """

    user: list[str] | None = None
    text: str | None = None
    tokens: str | None = None
    items: list[str] | None = None
    sequence: str | None = None
    order: str | None = None
    session_gap: str | None = None
    types: list[str] | None = None
    tokenizer: str = "words"
    sentences: bool = False
    html: bool = False
    delimiter: str | None = None
    encoding: str | None = None
    quote: str | None = None
    escape: str | None = None
    sql: str | None = None
    database: str | None = None

    def source(self, paths: list[str] | None) -> Any:
        """Return the paths or the query as the source for `voxpop.read`.

        Raises:
            InputError: Neither files nor a query is given, both are given, or a path is a query or the address of a
                database.
        """
        if self.sql is None:
            for path in paths or []:
                check_path(path)
            if self.database is not None:
                raise InputError("--database is the address for a query. Add --sql QUERY, or remove it.")
            if not paths:
                raise InputError("The source is missing. Name files or folders, or give --sql QUERY.")
            return paths
        if paths:
            raise InputError("Give either files or --sql, not both. Remove one of them.")
        address = self.database or os.environ.get(DATABASE_VARIABLE)
        if not address:
            raise InputError(f"--sql must have an address. Add --database ADDRESS, or set {DATABASE_VARIABLE}.")

        return vp.SQL(self.sql, address)

    def columns(self, paths: list[str] | None) -> dict[str, Any]:
        """Return the column arguments of `voxpop.read` by name.

        Raises:
            InputError: The user column or the content column is missing. The message lists the columns of the
                source.
        """
        source = self.source(paths)
        given = {kind: getattr(self, kind) for kind in CONTENTS} | {"items": _names(self.items or [], "--items")}
        contents = {kind: name for kind, name in given.items() if name}
        if not contents and self.order is None and is_event_log(source, cases=not self.user):
            return {"user": _names(self.user)} if self.user else {}
        if not self.user or not _names(self.user):
            raise missing_column("--user is missing. Name the column that identifies the user.", source)
        options = ", ".join(f"--{kind}" for kind in given)
        if not contents:
            raise missing_column(f"The content column is missing. Name it with one of {options}.", source)
        if len(contents) > 1:
            raise InputError(f"Give only one of {options}; got {' and '.join(f'--{kind}' for kind in contents)}.")
        return {"user": _names(self.user), **contents}

    @property
    def reading(self) -> dict[str, Any]:
        """Further arguments for `voxpop.read`.

        Raises:
            InputError: An option cannot be parsed.
        """
        how: Any = vp.Tokenizer(tokenizer_of(self.tokenizer), sentences=self.sentences, html=self.html)
        given: dict[str, Any] = {
            "order": self.order,
            "session_gap": _pause(self.session_gap),
            "types": _pairs(self.types or [], "--types must be COLUMN=TYPE, such as --types price=decimal(12,2)."),
        }
        if self.text is not None or how != vp.Tokenizer("words"):
            given["tokenizer"] = how
        tab = self.delimiter in ("tab", "\\t")
        csv = vp.CSV("\t" if tab else self.delimiter, self.encoding, self.quote, _backslash(self.escape))
        if csv.given:
            given["csv"] = csv
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class ProfileArguments:
    """The columns of a profile.

    Attributes:
        columns: Columns of the profile, separated by commas. By default the columns are chosen by name and declared
            type.
        joint: Columns to also release jointly, separated by commas, or "pairs" for all pairs. Repeat the option.
            Without --columns and --text, only these keys and their counts are released.
        counts: Release noisy counts and cover. Without counts, more values are released.
        known: Public list of values of a column, as COLUMN=FILE; see `voxpop items --known`. Repeat the option.
        max_keys_per_user: Public bound on the number of keys per user, such as 1 if each account has one plan. Requires
            --joint without --columns and --text.
        other_rows: Measure the number of rows with keys that are not released. Requires --joint without --columns and
            --text.
        repeated: Plan the release as one of a series, such as one per week. Requires --joint without --columns and
            --text.
    """

    columns: list[str] | None = None
    joint: list[str] | None = None
    counts: Annotated[bool, Parameter(negative="--no-counts")] = True
    known: list[str] | None = None
    max_keys_per_user: int | None = None
    other_rows: Annotated[bool, Parameter(negative="--no-other-rows")] = True
    repeated: bool = False

    def choice(self, table: TableArguments) -> dict[str, Any]:
        """Return the arguments for `profiling_of`.

        Raises:
            InputError: An option of the table does not apply to profiles.
        """
        for name in ("tokens", "items", "sequence", "order", "session_gap", "sentences", "html"):
            if getattr(table, name):
                raise InputError(f"--{name} does not apply to a profile. Remove it.")
        if not table.user or not _names(table.user):
            raise InputError("--user is missing. Name the column that identifies the user.")
        joint: Any = [tuple(listed(each, "--joint")) for each in self.joint or []]
        return {
            "user": _names(table.user),
            "text": [] if table.text is None else listed(table.text, "--text"),
            "columns": None
            if self.columns is None
            else [name for each in self.columns for name in listed(each, "--columns")],
            "joint": "pairs" if self.joint == ["pairs"] else joint,
            "counts": self.counts,
            "known": _pairs(self.known or [], "--known must be COLUMN=FILE, such as --known country=countries.txt."),
            "max_keys_per_user": self.max_keys_per_user,
            "other_rows": self.other_rows,
            "repeated": self.repeated,
            **{name: value for name, value in table.reading.items() if name in ("types", "csv")},
        }


@dataclass(frozen=True, kw_only=True)
class RunArguments:
    """The engine and its limits.

    Attributes:
        engine: "local" to run on this machine, or "spark".
        master: Address of Spark, such as local[*], spark://host:7077, yarn or k8s://..., or of Spark Connect, such as
            sc://host:15002.
        partitions: Number of partitions of users on Spark. The default is the number of concurrent tasks.
        memory: Memory limit, such as 2GiB. Data that does not fit is written to work files.
        work_folder: Folder for work files. The default is TMPDIR.
        drop_missing_users: Skip rows without a user, and show the number of skipped rows. By default a row without a
            user is an error.
        exact: Show exact row numbers and counts in messages. By default these numbers are rounded, because they are
            private.
    """

    engine: Literal["local", "spark"] = "local"
    master: str | None = None
    partitions: int | None = None
    memory: str | None = None
    work_folder: Path | None = None
    drop_missing_users: bool = False
    exact: bool = False

    def check(self) -> None:
        """Reject Spark options for the local engine.

        Raises:
            InputError: `master` or `partitions` is given for the local engine.
        """
        for name in ("master", "partitions"):
            if self.engine == "local" and getattr(self, name) is not None:
                raise InputError(f"--{name} is an option of Spark. Add --engine spark, or remove --{name}.")


@dataclass(frozen=True, kw_only=True)
class SpendArguments:
    """The privacy budget.

    Attributes:
        epsilon: Privacy budget, above 0; required. Values up to 1 are strict, and values up to 10 are reasonable.
        delta: Largest probability of releasing an item that only one user has and no public list contains, such as
            1e-7. Required, except for models of sequences with a known alphabet.
    """

    epsilon: float | None = None
    delta: float | None = None

    @property
    def budget(self) -> Budget:
        """The budget, which requires both epsilon and delta.

        Raises:
            InputError: A number is missing or out of range.
        """
        if self.delta is None and self.epsilon is not None:
            raise InputError(
                "--delta is missing. Give the largest probability that an item of only one user is released, such as "
                "--delta 1e-7. Choose it far below one over the number of users, and never compute it from the data."
            )
        return self.pure

    @property
    def pure(self) -> Budget:
        """The budget of a mechanism that needs no delta.

        Raises:
            InputError: Epsilon is missing or a number is out of range.
        """
        if self.epsilon is None:
            raise InputError("--epsilon is missing. Give the privacy budget, such as --epsilon 1.")
        return Budget(self.epsilon, self.delta or 0.0)


@dataclass(frozen=True, kw_only=True)
class ChargeArguments:
    """The ledger that is charged.

    Attributes:
        ledger: Ledger to charge before the release runs; see `voxpop ledger init`.
        dataset: Name of the data set, in the ledger and in the report.
        run_id: Name of this run in the ledger. An interrupted run can start again without a second charge.
        seed: Make the release reproducible and NOT PRIVATE, for tests only.
        job: Digest of the job file, for the record; `voxpop run` passes it.
    """

    ledger: Path | None = None
    dataset: str | None = None
    run_id: str | None = None
    seed: int | None = None
    job: Annotated[str | None, Parameter(show=False)] = None


@dataclass(frozen=True, kw_only=True)
class ResultArguments:
    """The saved result.

    Attributes:
        overwrite: Replace an existing release in the folder.
        json: Print one JSON object.
        title: Title of the report.
        purpose: Purpose of the release, for the report.
        operator: Person who runs the release, for the report.
    """

    overwrite: bool = False
    json: bool = False
    title: str | None = None
    purpose: str | None = None
    operator: str | None = None

    def metadata(self, dataset: str | None) -> dict[str, str]:
        """Return the texts and the date that `save` writes into the report.

        Raises:
            InputError: A text cannot be written into a report.
        """
        from voxpop.release.result import Metadata

        given = {"title": self.title, "dataset": dataset, "purpose": self.purpose, "operator": self.operator}
        return Metadata().stated({**given, "date": date.today().isoformat()}).to_dict()


Sources = Annotated[
    list[str] | None,
    Parameter(
        name="SOURCE", help="Files, folders or patterns of Parquet, CSV, TSV, JSON or Arrow; - is standard input."
    ),
]
ResultFolder = Annotated[Path, Parameter(name="DIR", help="Folder of a saved release.")]
Output = Annotated[Path, Parameter(name=["--output", "-o"], help="Folder to save to.")]
Json = Annotated[bool, Parameter(help="Print one JSON object.")]
First = Annotated[int, Parameter(help="Number of rows to show.", validator=COUNTED)]
Overwrite = Annotated[bool, Parameter(help="Replace an existing file.")]
MECHANISM_GROUP = _group("Mechanism", 2)
SpendOptions = Annotated[SpendArguments, _group("Budget", 3)]
TableOptions = Annotated[TableArguments, _group("Table", 1)]
ChargeOptions = Annotated[ChargeArguments, _group("Ledger", 4)]
ResultOptions = Annotated[ResultArguments, _group("Result", 5)]
ProfiledOptions = Annotated[ProfileArguments, MECHANISM_GROUP]
RunOptions = Annotated[RunArguments, _group("Execution", 6)]


@dataclass(frozen=True, kw_only=True)
class Call:
    """The options of every command that reads a table and spends a budget."""

    table: TableOptions = TableArguments()
    spend: SpendOptions = SpendArguments()
    charge: ChargeOptions = ChargeArguments()
    run: RunOptions = RunArguments()


CallOptions = Annotated[Call, Parameter(name="*")]


class FieldChoice:
    """The command-line option for one field of a mechanism."""

    def __init__(self, kind: Any, text: str | None = None, convert: Callable[[Any], Any] = lambda value: value) -> None:
        self.kind = kind if text is None else Annotated[kind, Parameter(help=text)]
        self.convert = convert


def shown_default(value: Any) -> str | None:
    """Return the help text of a default, or None if the default is not shown."""
    return None if value is None or value is False or value in ("", 0, ()) else str(value)


def options_of(mechanism: type, choices: dict[str, FieldChoice]) -> type:
    """Return a dataclass with the fields of a mechanism, its defaults and the descriptions in its docstring.

    Args:
        mechanism: The public configuration class.
        choices: The options of fields that have a different type on the command line, by field name.
    """
    columns = []
    for each in fields(mechanism):
        choice = choices.get(each.name)
        kind = choice.kind if choice else each.type
        if isinstance(kind, str):
            raise InternalError(f"`{each.name}` must have a type for the command line. Add it to CHOICES in cli/app.py")
        # An empty default becomes None, because the type of a converted option may not include an empty tuple.
        default = None if each.default is MISSING or each.default == () else each.default
        columns.append((each.name, kind, field(default=default)))

    def configured(self: Any) -> Any:
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return mechanism(
            **{name: choices[name].convert(value) if name in choices else value for name, value in given.items()}
        )

    # Cyclopts does not expand classes of the module `types`, to which `dataclasses` assigns new classes.
    others = {"__doc__": mechanism.__doc__, "__module__": __name__, "configured": property(configured)}
    return make_dataclass(f"{mechanism.__name__}Options", columns, frozen=True, kw_only=True, namespace=others)


def tokenizer_of(name: str) -> Any:
    """Return the tokenizer for `voxpop.read`, which is a name, or a compiled expression for `regex:PATTERN`.

    Raises:
        InputError: The expression cannot be compiled.
    """
    if not name.startswith(_REGEX):
        return name
    try:
        return re.compile(name.removeprefix(_REGEX))
    except re.error as error:
        raise InputError(f"--tokenizer {name} must be a name or a regular expression: {error}.") from error


ENTRY = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*|([^,]*))(,|$)', re.DOTALL)
"""An entry of a list, with or without quotes, and its comma."""


def listed(text: str, option: str) -> list[str]:
    r"""Return the entries of a comma-separated list.

    Spaces around an entry and empty entries are ignored. An entry in double quotes is not changed, so it may contain
    commas, spaces at its ends and doubled quotes.

    Args:
        text: The list.
        option: The name of the option, for the message.

    Raises:
        InputError: A quote is not closed, or a closing quote is followed by anything but a comma.

    Example:
        >>> listed('pay, ship , "Create, invoice",,', "--alphabet")
        ['pay', 'ship', 'Create, invoice']
    """
    found, place, text = [], 0, text.removeprefix("\ufeff")
    while place <= len(text):
        entry = ENTRY.match(text, place)
        if entry is None or (entry[1] is None and entry[2].startswith('"')):
            raise InputError(
                f"{option} must be a list such as pay, ship or '\"a, b\",c'. Close each quote before a comma."
            )
        whole = entry[2].strip() if entry[1] is None else entry[1].replace('""', '"')
        if whole or entry[1] is not None:
            found.append(whole)
        place = entry.end() if entry[3] else len(text) + 1
    return found


def listed_file(path: Path, option: str) -> list[str]:
    """Return the lines of a public file, each as one entry. Lines in double quotes are parsed like entries of `listed`.

    Raises:
        InputError: The file cannot be read as UTF-8.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{option} {path} must be a UTF-8 file with one entry per line.") from error
    quoted = re.compile(r'"((?:[^"]|"")*)"')
    entries = [(quoted.fullmatch(line.strip()), line.strip()) for line in lines]
    return [line if whole is None else whole[1].replace('""', '"') for whole, line in entries if line]


def _names(given: list[str], option: str = "--user") -> str | list[str]:
    """Return the column names of a repeated or comma-separated option, or a string if there is only one."""
    names = [name for each in given for name in listed(each, option)]
    return names[0] if len(names) == 1 else names


def _backslash(given: str | None) -> str | None:
    """Replace two backslashes with one. A shell does this only for unquoted backslashes."""
    return "\\" if given == "\\\\" else given


def _pause(session_gap: str | None) -> str | float | None:
    try:
        return None if session_gap is None else float(session_gap)
    except ValueError:
        return session_gap


def _pairs(given: list[str], problem: str) -> dict[str, str] | None:
    """Return options of the form NAME=VALUE as a dictionary, or None if there are no such options."""
    pairs = [each.partition("=") for each in given]
    for name, equals, value in pairs:
        if not (name and equals and value):
            raise InputError(f"{problem} Repeat it for more.")
    if len({name for name, *_ in pairs}) < len(pairs):
        raise InputError(f"{problem} Give each column only once.")
    return {name: value for name, _, value in pairs} or None
