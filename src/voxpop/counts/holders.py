"""From a corpus to how many users hold each gram of a public list: the private side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from voxpop.arrays import Int64s
from voxpop.counts.listed import ListedGrams, listed_grams
from voxpop.counts.shares import HolderShares

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine, RestrictableDraws, Weights
    from voxpop.release.release import Release


def weights_of_holders(
    corpus: "Engine", release: "Release", limits: Sequence[int], secret: "RestrictableDraws"
) -> Iterator[tuple[ListedGrams, "Weights"]]:
    """Yield the grams of each length from 1 on, and their weights by rank.

    Args:
        corpus: the private side.
        release: whose grams are counted.
        limits: for each length.
        secret: asked by the corpus; nothing is sampled, since nobody holds more grams than there are.
    """
    levels = corpus.length_walk()
    for listed, limit in zip(listed_grams(release, len(limits)), limits, strict=True):
        if listed.length == 1:
            levels.keep_words(listed.words)
        else:
            levels.extend(_Everything.of(listed.before))
            levels.keep(listed.names)
        shares = HolderShares(limit, listed.counted)
        # The limit is all there is, so nobody is sampled and no draw is made.
        yield listed, levels.weigh(shares, max(1, listed.size), secret, f"count {listed.length}")


@dataclass(frozen=True, slots=True, eq=False)
class _Everything:
    """Every pair of kept grams is a candidate: what is not on the list is forgotten right afterwards.

    Attributes:
        need: int64 by kept gram, 0.
        estimates: int64 by kept gram, 0.
        single: always False: partners are grams.
    """

    need: Int64s
    estimates: Int64s
    single: bool = False

    @staticmethod
    def of(size: int) -> "_Everything":
        """Return the candidates among so many kept grams."""
        return _Everything(np.zeros(size, np.int64), np.zeros(size, np.int64))
