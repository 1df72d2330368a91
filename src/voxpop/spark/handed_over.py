"""A corpus whose rows a query of Spark gives, and which this machine holds."""

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any

from voxpop.keys import Keys

if TYPE_CHECKING:
    from voxpop.corpus.corpus import Corpus
    from voxpop.corpus.engine import Combine, Engine, RestrictableDraws
    from voxpop.corpus.length_walk import MemoryLengthWalk
    from voxpop.corpus.pools import Pools
    from voxpop.corpus.round_walk import MemoryRoundWalk
    from voxpop.corpus.tree_walk import MemoryTreeWalk


class HandedOver:
    """What people hold, read once, when something is first asked of it: private, and a `Corpus` from then on.

    Attributes:
        kind: "text", "tokens", "items" or "sequence".
        reading: how its tokens were made, as in `Corpus`.
        keys: the columns that items came from, as in `Corpus`.
    """

    def __init__(self, read: "Callable[[], Corpus]", kind: str, reading: str, keys: Keys) -> None:
        """Take what reads the rows; it is called again only where it failed."""
        self._read = read
        self._held: Corpus | None = None
        self._reading = Lock()
        self.kind = kind
        self.reading = reading
        self.keys = keys

    def gathered(self) -> "Corpus":
        """Return all users in arrays on this machine."""
        with self._reading:
            if self._held is None:
                self._held = self._read()
            return self._held

    def round_walk(self) -> "MemoryRoundWalk":
        """Return the items, to be released in one round or several."""
        return self.gathered().round_walk()

    def pools(self, secret: "RestrictableDraws") -> "Pools":
        """Return every user's distinct items, to be released in adaptive rounds."""
        return self.gathered().pools(secret)

    def length_walk(self) -> "MemoryLengthWalk":
        """Return the walk from words to longer and longer grams."""
        return self.gathered().length_walk()

    def tree_walk(
        self, alphabet: tuple[str, ...], max_length: int, combine: "Combine", secret: "RestrictableDraws"
    ) -> "MemoryTreeWalk":
        """Return every user's one sequence, to be counted."""
        return self.gathered().tree_walk(alphabet, max_length, combine, secret)

    def __getattr__(self, name: str) -> Any:
        """Answer as a `Corpus` does; what a notebook or a debugger tries out runs nothing."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.gathered(), name)

    def __repr__(self) -> str:
        return f"HandedOver(kind={self.kind!r}, private)"


if TYPE_CHECKING:
    _contract: type[Engine] = HandedOver
