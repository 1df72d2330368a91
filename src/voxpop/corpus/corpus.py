"""The one data structure: tokens as integers, user by user."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from voxpop.arrays import Bytes, Int32s, Int64s, Uint64s
from voxpop.keys import WORDS, Keys

if TYPE_CHECKING:
    from voxpop.corpus.draws import Draws
    from voxpop.corpus.engine import Combine, Engine, Shares
    from voxpop.corpus.histogram import Histogram
    from voxpop.corpus.holdings import Holdings
    from voxpop.corpus.length_walk import MemoryLengthWalk
    from voxpop.corpus.limited.memory import MemoryLimit
    from voxpop.corpus.pools import Pools
    from voxpop.corpus.round_walk import MemoryRoundWalk
    from voxpop.corpus.tree_walk import MemoryTreeWalk


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Corpus:
    """What people hold, encoded: private, and never part of a release.

    Attributes:
        tokens: int32, the id of every token; -1 after each document. Items have no order and no -1.
        user_start: int64 (users + 1), where each user's tokens begin.
        user_key: uint64 (users), a function of the user's id alone, from which the user's random draws follow.
        vocabulary: large_string, token by id, sorted by UTF-8 bytes: ids do not depend on the order of the input.
        kind: "text", "tokens", "items" or "sequence".
        reading: how its tokens were made, which is public: the tokeniser of texts ("words", "whitespace",
            "characters", "regex:PATTERN"), else the kind; "" where it is not known.
        keys: the columns that items came from, which are public as the schema is; none for words.
        limit: how much memory the work on it may take; None for as much as it needs.
    """

    tokens: Int32s
    user_start: Int64s
    user_key: Uint64s
    vocabulary: pa.LargeStringArray
    kind: str
    reading: str = ""
    keys: Keys = WORDS
    limit: "MemoryLimit | None" = None

    def within(self, limit: "MemoryLimit | None") -> "Corpus":
        """Return the same corpus, to be worked on within a limit."""
        return replace(self, limit=limit)

    def weigh(
        self,
        weighting: "Shares",
        limit: int,
        candidates: Bytes | None,
        secret: "Draws",
        pass_name: str = "length 1",
    ) -> "Histogram":
        """Let every user share its weight over at most `limit` distinct candidates; see `voxpop.corpus.weigh`."""
        from voxpop.corpus.weigh import weigh

        holdings = self.holdings(secret, pass_name, ordered=weighting.sequential)
        return weigh(holdings, weighting, limit, candidates, secret, pass_name)

    def holdings(self, secret: "Draws", pass_name: str, *, ordered: bool) -> "Holdings":
        """Return what users hold, in the order in which they weigh in a pass where that matters."""
        from voxpop.corpus.holdings import Holdings

        users = self.tokens, self.user_start, self.user_key
        order = None
        if ordered and self.limit is not None:
            from voxpop.corpus.limited.ordering import in_weighing_order

            users = in_weighing_order(*users, self.limit, secret, pass_name)
        elif ordered:
            from voxpop.corpus.weighing_order import weighing_order

            order = weighing_order(self.user_key, secret, pass_name)
        return Holdings(*users, len(self.vocabulary), order, limit=self.limit, words=self.vocabulary)

    def round_walk(self) -> "MemoryRoundWalk":
        """Return the items, to be released in one round or several."""
        from voxpop.corpus.round_walk import MemoryRoundWalk

        return MemoryRoundWalk(self.weigh, self.vocabulary)

    def tree_walk(
        self, alphabet: tuple[str, ...], max_length: int, combine: "Combine", secret: "Draws"
    ) -> "MemoryTreeWalk":
        """Return every user's one sequence, to be counted; see `voxpop.corpus.one_sequence`."""
        from voxpop.corpus.one_sequence import one_sequence_each
        from voxpop.corpus.tree_walk import MemoryTreeWalk

        self.require("the sequences of all users", per_token=4, per_user=64 + 12 * (max_length + 1), per_word=64)
        return MemoryTreeWalk(one_sequence_each(self, alphabet, max_length, combine, secret), len(alphabet))

    def pools(self, secret: "Draws") -> "Pools":
        """Return every user's distinct items, to be released in adaptive rounds."""
        from voxpop.corpus.pools import Pools

        return Pools(self, secret)

    def gathered(self) -> "Corpus":
        """Return all users in arrays on this machine: this corpus."""
        return self

    def require(self, what: str, *, per_token: int, per_user: int, per_word: int) -> None:
        """Refuse work in memory that would go beyond the limit, if there is one.

        Args:
            what: what takes the memory, in the plural.
            per_token: bytes that it takes at its peak for each token.
            per_user: for each user.
            per_word: for each distinct token.

        Raises:
            MemoryLimitError: saying which limit would do.
        """
        if self.limit is not None:
            # Bytes at the peak, from above.
            size = per_token * self.tokens.size + per_user * self.user_key.size + per_word * len(self.vocabulary)
            self.limit.require(size, what)

    def length_walk(self) -> "MemoryLengthWalk":
        """Return the walk from words to longer and longer grams."""
        from voxpop.corpus.length_walk import MemoryLengthWalk

        return MemoryLengthWalk(self, self.limit)

    def save(self, folder: str | Path) -> None:
        """Save to a folder, so that tokenising is paid once; `voxpop.load_corpus` maps it back into memory.

        Args:
            folder: made or replaced; only its owner may read it, for it holds what people wrote.

        Raises:
            SourceError: where the folder cannot be written, or holds something else.
        """
        from voxpop.corpus.store import save_corpus

        save_corpus(self, Path(folder))

    def __repr__(self) -> str:
        return f"Corpus(kind={self.kind!r}, private)"

    def _repr_html_(self) -> str:
        """Return for a notebook what may be said, which is nothing about anybody: not even how many there are."""
        from voxpop.showing import card

        line = "What people hold is private: a corpus shows nothing of it, neither users nor how many there are."
        return card(f"Corpus of {self.kind}", [line, "Hand it to a mechanism: vp.SetUnion().release(corpus, budget)."])


if TYPE_CHECKING:
    _contract: type[Engine] = Corpus
