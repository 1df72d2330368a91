"""The private data that users of voxpop hold."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from voxpop.errors import InputError

if TYPE_CHECKING:
    from voxpop.engine.contract import Engine


@final
class Corpus:
    """Private data, as `voxpop.read` and `voxpop.load_corpus` return it, for `release` of any mechanism.

    It shows nothing of the data: neither tokens nor users, nor their number.
    """

    __slots__ = ("_engine",)

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    @property
    def kind(self) -> str:
        """The kind of data: "text", "tokens", "items" or "sequence"."""
        return self._engine.kind

    def save(self, folder: str | Path) -> None:
        """Save to a folder, so that texts are tokenized once; `voxpop.load_corpus` maps the folder into memory.

        Args:
            folder: made or replaced. Only its owner may read it, because it contains private data.

        Raises:
            SourceError: if the folder cannot be written, or contains something else.
            InputError: if the data is on a Spark cluster.
        """
        save: Any = getattr(self._engine, "save", None)
        if save is None:
            raise InputError("data on a Spark cluster is not saved: write the table there, and read it again.")
        save(folder)

    def __repr__(self) -> str:
        return f"Corpus(kind={self.kind!r}, private)"

    def _repr_html_(self) -> str:
        """Return a card for notebooks, which shows nothing of the data."""
        from voxpop.privacy.showing import card

        line = "The data is private: a corpus shows nothing of it, neither users nor their number."
        return card(f"Corpus of {self.kind}", [line, "Pass it to a mechanism: vp.SetUnion().release(corpus, budget)."])
