"""The columns to read from a table, on any engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal, final

from voxpop.errors import InputError
from voxpop.reading.choices import TextTokenizer
from voxpop.reading.events import check_events
from voxpop.reading.keys import type_named
from voxpop.reading.text_files import CSV
from voxpop.reading.tokenizers import list_tokeniser, tokeniser_name
from voxpop.reading.typed_keys import TypedKeys
from voxpop.reading.types import Column, declared_types

_ROWS_AT_ONCE = 1 << 15
_ITEMS_AT_ONCE = 1 << 20


@final
@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A tokenizer for texts with its options.

    Attributes:
        name: "words", "whitespace", "characters", a compiled regular expression, or a callable from a list of texts to
            a list of lists of strings (see `voxpop.read`).
        sentences: Whether each text is first split into sentences (UAX #29), so that phrases do not cross sentence
            boundaries.
        html: Whether texts are HTML. Tags, comments, scripts and styles are removed, and entities are decoded.

    Example:
        >>> import voxpop as vp
        >>> vp.Tokenizer("words", html=True)
        Tokenizer(name='words', sentences=False, html=True)
    """

    name: TextTokenizer = "words"
    sentences: bool = False
    html: bool = False


@final
@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options for reading and extraction. Only `partitions` and `missing_users` change the result.

    Attributes:
        memory: The maximum memory that the process may use while it reads and extracts, such as "2GiB". Data that does
            not fit is stored in work files. By default there is no limit for local sources, and half of this machine's
            memory is the limit for a Spark DataFrame.
        work_folder: The folder for work files. The default is the system's folder for temporary files.
        partitions: The number of partitions for the users of a Spark DataFrame (docs/guides/spark.md).
        progress: Whether to show progress and messages on standard error. By default progress and messages are shown
            only on a terminal.
        exact: Whether progress, messages and errors show exact row numbers and counts. By default these numbers are
            rounded to two digits, because all counts of rows are private.
        missing_users: "error" raises an error for a row without a user. "drop" skips rows without a user and shows
            their number. With "drop", a user that is spelled like a missing value, such as NULL, nan or N/A, also
            counts as missing.

    Raises:
        InputError: If `missing_users` has any other value.

    Example:
        >>> import voxpop as vp
        >>> vp.ReadOptions(memory="2GiB", progress=False).memory
        '2GiB'
    """

    memory: str | int | None = None
    work_folder: str | PathLike[str] | None = None
    partitions: int | None = None
    progress: bool | None = None
    exact: bool = False
    missing_users: Literal["error", "drop"] = "error"

    def __post_init__(self) -> None:
        if self.missing_users not in ("error", "drop"):
            raise InputError(f'`missing_users` must be "error" or "drop", got {self.missing_users!r}.')


@dataclass(frozen=True, slots=True)
class Request:
    """The columns to read and the options for reading them, for every source and engine.

    Attributes:
        users: The columns that together identify the user of a row.
        kind: "text", "tokens", "items" or "sequence".
        columns: The column of this kind. There may be several columns of items.
        tokenizer: The tokenizer for texts.
        order: The column of event times, if rows are events.
        session_gap: The longest pause within a sequence of events. By default, there is no limit.
        times: The kind of event times that are strings, if it is known in advance (`events.kind_of_times`).
        types: The types that the caller declares, by column, as Arrow prints them.
        typed: The sets of typed keys that rows are converted to, if the contents are typed keys.
        options: The options of the call.
        csv: The dialect of CSV files.
        absent: The columns that a file does not contain, because the values are in folder names.

    Raises:
        InputError: If these arguments are incompatible.

    Example:
        >>> request = Request.of(user="author", items=["make", "model"])
        >>> request.kind, request.names, request.token_source
        ('items', ['author', 'make', 'model'], 'items')
    """

    users: list[str]
    kind: str
    columns: list[str]
    tokenizer: Tokenizer = field(default_factory=Tokenizer)
    order: str | None = None
    session_gap: Any = None
    times: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    typed: TypedKeys | None = None
    options: ReadOptions = field(default_factory=ReadOptions)
    csv: CSV = field(default_factory=CSV)
    absent: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        check_events(self.kind, self.order, self.session_gap)
        if {self.order} & {*self.users, *self.columns}:
            raise InputError(
                f'"{self.order}" is named both for the order and for another purpose; name another column.'
            )
        if both := set(self.users) & set(self.columns):
            raise InputError(f'"{min(both)}" is named both for users and for their items; name two columns.')
        list_tokeniser(self.tokenizer.name)
        for option in ("sentences", "html"):
            if getattr(self.tokenizer, option) and self.kind != "text":
                raise InputError(f"{option}=True applies only to text=, not to {self.kind}=. Remove it.")

    @classmethod
    def of(
        cls,
        *,
        user: Any,
        text: Any = None,
        tokens: Any = None,
        items: Any = None,
        sequence: Any = None,
        types: Any = None,
        **more: Any,
    ) -> "Request":
        """Return the columns that a call to `voxpop.read` names.

        Args:
            user: One or several user columns.
            text: The text column. Exactly one of text, tokens, items and sequence must be given (see
                `voxpop.read`).
            tokens: The column of lists of tokens.
            items: One or several item columns.
            sequence: One column.
            types: The declared types by column.
            more: Further fields of this class.

        Raises:
            InputError: If the number of content columns is not one, or the arguments are incompatible.
        """
        columns = {"text": text, "tokens": tokens, "items": items, "sequence": sequence}
        given = [(kind, names) for kind, names in columns.items() if names is not None]
        if len(given) != 1:
            named = ", ".join(kind for kind, _ in given) or "none"
            raise InputError(f"give exactly one of text=, tokens=, items= and sequence=, got {named}.")
        [(kind, names)] = given
        contents = _column_names(kind, names) if kind == "items" else [str(names)]
        users, order = _column_names("user", user), more.get("order")
        names = [*users, *contents, *([order] if isinstance(order, str) else [])]
        return cls(users, kind, contents, **more, types=declared_types(types, names))

    @property
    def names(self) -> list[str]:
        """The names of all columns to read (users, contents, and times if there are any)."""
        every = [*self.users, *self.columns, *([] if self.order is None else [self.order])]
        return [name for name in every if name not in self.absent]

    @property
    def selection(self) -> list[Column]:
        """The columns to read, with the types that the caller declares."""
        lists = {"text": False, "items": None if len(self.columns) == 1 else False}.get(self.kind, self.order is None)
        lists = False if self.typed else lists
        kinds = {name: type_named(kind) for name, kind in self.types.items()}
        return [Column(name, kinds.get(name), lists if name in self.columns else False) for name in self.names]

    @property
    def aliases(self) -> list[str]:
        """Replacements for `names` that every system supports. Spark, for example, does not support unusual names."""
        owners = [f"user{number}" for number in range(len(self.users))]
        contents = [f"content{number}" for number in range(len(self.columns))]
        return [*owners, *contents, "time"][: len(self.names)]

    @property
    def repeated(self) -> str | None:
        """The column of items if there is only one.

        A file may store each distinct value of this column once, in a dictionary.
        """
        return self.columns[0] if self.kind == "items" and len(self.columns) == 1 else None

    @property
    def rows(self) -> int:
        """The approximate maximum number of rows in a batch."""
        return _ITEMS_AT_ONCE if self.kind == "items" else _ROWS_AT_ONCE

    @property
    def small(self) -> bool:
        """Whether batches must be small, and the reader may keep only a small part of the source in memory."""
        return self.options.memory is not None

    @property
    def drops(self) -> bool:
        """Whether rows without a user are skipped."""
        return self.options.missing_users == "drop"

    @property
    def token_source(self) -> str:
        """The description of the tokenizer, as in `Corpus`."""
        if self.typed:
            return f"{self.typed.token_source}{tokeniser_name(self.tokenizer.name)}"
        return tokeniser_name(self.tokenizer.name) if self.kind == "text" else self.kind


def _column_names(what: str, given: Any) -> list[str]:
    """Return the columns that an argument names. The argument is one name or a list of names.

    Raises:
        InputError: If the argument does not consist of distinct names.
    """
    some = given if isinstance(given, list | tuple) else [given]
    names = [str(name) for name in some if isinstance(name, str | int)]  # pandas numbers columns without names
    if not names or len(names) < len(some) or len(set(names)) < len(names):
        raise InputError(f"{what}= must be the name of a column, or a list of distinct names of columns.")
    return names
