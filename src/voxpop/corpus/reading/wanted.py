"""What is read of a table, whatever engine reads it."""

from dataclasses import dataclass
from typing import Any

from voxpop.choices import TextTokenizer
from voxpop.corpus.reading.events import check_events
from voxpop.corpus.reading.tokenisers import list_tokeniser, tokeniser_name
from voxpop.errors import InputError


@dataclass(frozen=True, slots=True)
class Wanted:
    """Columns, and what becomes of them: the arguments of `voxpop.read` that every engine takes.

    Attributes:
        users: columns that together say whose a row is.
        kind: "text", "tokens", "items" or "sequence".
        columns: that column; of items there may be several.
        tokenizer: how texts are cut into tokens.
        sentences: whether they are cut into sentences first.
        html: whether they are HTML.
        order: the column of times by which rows are events, or None.
        session: the longest pause within a sequence of events, or None.

    Raises:
        InputError: where these do not fit each other.

    Example:
        >>> wanted = Wanted.of(user="author", items=["make", "model"])
        >>> wanted.kind, wanted.names, wanted.reading
        ('items', ['author', 'make', 'model'], 'items')
    """

    users: list[str]
    kind: str
    columns: list[str]
    tokenizer: TextTokenizer = "words"
    sentences: bool = False
    html: bool = False
    order: str | None = None
    session: Any = None

    def __post_init__(self) -> None:
        check_events(self.kind, self.order, self.session)
        if {self.order} & {*self.users, *self.columns}:
            raise InputError(f'"{self.order}" is named for the order and for something else; name another column.')
        if both := set(self.users) & set(self.columns):
            raise InputError(f'"{min(both)}" is named both for users and for what they hold; name two columns.')
        list_tokeniser(self.tokenizer)
        if self.sentences and self.kind != "text":
            raise InputError(f"sentences=True cuts texts; with {self.kind}= there are none.")
        if self.html and self.kind != "text":
            raise InputError(f"html=True strips texts; with {self.kind}= there are none.")

    @classmethod
    def of(
        cls,
        *,
        user: Any,
        text: Any = None,
        tokens: Any = None,
        items: Any = None,
        sequence: Any = None,
        **cut: Any,
    ) -> "Wanted":
        """Return what a call of `voxpop.read` names.

        Args:
            user: one column or several.
            text: as in `voxpop.read`, like all that follow.
            tokens: of these four exactly one is given.
            items: one column or several.
            sequence: one column.
            cut: the fields of this class that say how columns become tokens.

        Raises:
            InputError: where not exactly one column of contents is named, or the arguments do not fit each other.
        """
        columns = {"text": text, "tokens": tokens, "items": items, "sequence": sequence}
        given = [(kind, names) for kind, names in columns.items() if names is not None]
        if len(given) != 1:
            named = ", ".join(kind for kind, _ in given) or "none"
            raise InputError(f"give exactly one of text=, tokens=, items= and sequence=, got {named}.")
        [(kind, names)] = given
        contents = _column_names(kind, names) if kind == "items" else [str(names)]
        return cls(_column_names("user", user), kind, contents, **cut)

    @property
    def names(self) -> list[str]:
        """All columns that are read: users, contents, and times where there are some."""
        return [*self.users, *self.columns, *([] if self.order is None else [self.order])]

    @property
    def aliases(self) -> list[str]:
        """The same by names that every system can hold, Spark among them, which knows none that are odd."""
        owners = [f"user{number}" for number in range(len(self.users))]
        contents = [f"content{number}" for number in range(len(self.columns))]
        return [*owners, *contents, "time"][: len(self.names)]

    @property
    def repeated(self) -> str | None:
        """The one column of items, if it is one, of which a file may hold each value once."""
        return self.columns[0] if self.kind == "items" and len(self.columns) == 1 else None

    @property
    def reading(self) -> str:
        """How tokens are made, as in `Corpus`."""
        return tokeniser_name(self.tokenizer) if self.kind == "text" else self.kind


def _column_names(what: str, given: Any) -> list[str]:
    """Return the columns that an argument names: one, or a list of several.

    Raises:
        InputError: for anything but distinct names.
    """
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, list | tuple) else []
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise InputError(f"{what}= must be the name of a column, or a list of several different ones.")
    return names
