"""The released grams of one length: public, in canonical order."""

from dataclasses import dataclass

import numpy as np

from voxpop.arrays import Int32s, Int64s

LOW = np.int64(2**32 - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Grams:
    """Grams by rank; a rank is the place in the order of their tokens.

    Attributes:
        tokens: int32 (grams, length), ranks of the tokens among the released ones.
        prefix: int32 (grams), rank of the gram without its last token among those one shorter; 0 at length 1.
        suffix: int32 (grams), rank of the gram without its first token, under both-side pruning; 0 at length 1.
    """

    tokens: Int32s
    prefix: Int32s
    suffix: Int32s

    @staticmethod
    def of_tokens(count: int) -> "Grams":
        """Return the grams of length 1."""
        none = np.zeros(count, np.int32)
        return Grams(np.arange(count, dtype=np.int32)[:, None], none, none)

    def longer(self, names: Int64s, *, single: bool) -> "Grams":
        """Return the grams one token longer.

        Args:
            names: int64, rising, `left * 2^32 + partner`.
            single: whether partners are tokens, rather than grams of this length.
        """
        left, partner = (names >> 32).astype(np.int32), (names & LOW).astype(np.int32)
        # Both-side: the partner overlaps in all but its last token.
        last = partner if single else self.tokens[partner, -1]
        # (grams, length + 1); names rise, so rows are in order of their tokens.
        return Grams(np.hstack([self.tokens[left], last[:, None]]), left, partner)

    @property
    def length(self) -> int:
        """Tokens in each gram."""
        return int(self.tokens.shape[1])

    def __len__(self) -> int:
        return len(self.tokens)
