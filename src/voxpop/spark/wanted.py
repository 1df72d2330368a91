"""What is read of a table of Spark."""

from dataclasses import dataclass
from typing import Any

from voxpop.corpus.reading.tokenisers import tokeniser_name


@dataclass(frozen=True, slots=True)
class Wanted:
    """Columns, and what becomes of them.

    Attributes:
        users: columns that together say whose a row is.
        kind: "text", "tokens", "items" or "sequence".
        columns: that column; of items there may be several.
        cut: further arguments of `voxpop.read`, which say how it becomes tokens.
    """

    users: list[str]
    kind: str
    columns: list[str]
    cut: dict[str, Any]

    @property
    def names(self) -> list[str]:
        """All columns that are read: users, contents, and times where there are some."""
        order = self.cut.get("order")
        return [*self.users, *self.columns, *([] if order is None else [order])]

    @property
    def aliases(self) -> list[str]:
        """The names by which they go through Spark, which knows none that are odd."""
        owners = [f"user{number}" for number in range(len(self.users))]
        contents = [f"content{number}" for number in range(len(self.columns))]
        return [*owners, *contents, "time"][: len(self.names)]

    @property
    def repeated(self) -> str | None:
        """The one column of items, if it is one, of which a file may hold each value once."""
        return self.columns[0] if self.kind == "items" and len(self.columns) == 1 else None

    @property
    def columns_of_read(self) -> dict[str, Any]:
        """The arguments of `voxpop.read` that name columns."""
        return {"user": self.users, self.kind: self.columns if self.kind == "items" else self.columns[0]}

    @property
    def reading(self) -> str:
        """How tokens are made, as in `Corpus`."""
        return tokeniser_name(self.cut["tokenizer"]) if self.kind == "text" else self.kind
