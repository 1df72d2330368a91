"""The distinct pairs of user and item, which are the private data that every baseline reads."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from benchmarks.baselines.pouring import count_times
from voxpop.kernels.arrays import Bools, Int32s, Int64s
from voxpop.kernels.weigh import gather_distinct, keep_smallest, pairs_over_limit
from voxpop.privacy.secret import Secret

if TYPE_CHECKING:
    from voxpop.engine.local.corpus import LocalCorpus
    from voxpop.release.release import Release

Mask = Bools


@dataclass(frozen=True, slots=True, eq=False)
class PrivatePairs:
    """Distinct pairs of user and item. They are private, for comparisons on public data, and never part of a release.

    Attributes:
        items: int32 (pairs), the items of all users, user by user.
        starts: int64 (users + 1), where each user's items begin.
        times: int32 (pairs), the number of times that the user has the item.
        size: The number of possible items. Ids are below it.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"who": [1, 1, 1, 2], "what": ["b", "a", "b", "a"]})
        >>> held = PrivatePairs.of(vp.read(table, user="who", items="what"))
        >>> held.holders().tolist(), held.missing_mass(np.array([True, False]))
        ([2, 1], 0.3333333333333333)
    """

    items: Int32s
    starts: Int64s
    times: Int32s
    size: int

    @staticmethod
    def of(corpus: "LocalCorpus") -> "PrivatePairs":
        """Return the pairs of a corpus, with the ids of its vocabulary."""
        size = len(corpus.vocabulary)
        everyone = np.arange(corpus.user_key.size)
        seen = np.full(size, -1, np.int32)
        items, starts = gather_distinct(corpus.tokens, corpus.user_start, everyone, np.empty(0, np.uint8), seen, 0)
        times = count_times(corpus.tokens, corpus.user_start, items, starts, np.zeros(size, np.int32))
        return PrivatePairs(items, starts, times, size)

    @property
    def sizes(self) -> Int64s:
        """The number of items of each user, as int64 (users)."""
        return np.diff(self.starts)

    @property
    def users(self) -> Int64s:
        """The user of each pair, as int64 (pairs)."""
        return np.repeat(np.arange(self.starts.size - 1), self.sizes)

    def holders(self) -> Int64s:
        """Return the number of users of each item, as int64 (size)."""
        return np.bincount(self.items, minlength=self.size)

    def missing_mass(self, released: Mask) -> float:
        """Return the share of pairs of unreleased items (Dick, Joseph and Raman, 2026, Definition 2.2).

        Args:
            released: bool (size), the released items.
        """
        holders = self.holders()
        return float(holders[~released].sum() / max(holders.sum(), 1))

    def in_order(self, rank: Int64s | Int32s) -> "PrivatePairs":
        """Return the pairs with each user's items in increasing order of rank. Ties keep their order.

        Args:
            rank: integers (pairs), the rank of each pair.
        """
        order = np.lexsort((rank, self.users))
        return replace(self, items=self.items[order], times=self.times[order])

    def where(self, kept: Mask) -> "PrivatePairs":
        """Return a part of the pairs, with the same users.

        Args:
            kept: bool (pairs), the pairs of the part.
        """
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])[self.starts]
        return replace(self, items=self.items[kept], starts=starts, times=self.times[kept])

    def drawn(self, limit: int, secret: Secret, purpose: str) -> "PrivatePairs":
        """Return at most `limit` items of each user, drawn uniformly without replacement.

        Args:
            limit: The maximum number of items per user.
            secret: The source of the draws.
            purpose: The name of the draws. Another name gives other draws.
        """
        if self.sizes.max(initial=0) <= limit:
            return self
        users = np.arange(self.sizes.size, dtype=np.uint64)
        first, second = pairs_over_limit(self.items, self.starts, users, limit)
        draws = secret.draws(f"sample/{purpose}", first, second)[:, 0].copy()
        pairs, starts = np.arange(self.items.size, dtype=np.int32), self.starts.copy()
        pairs = pairs[: keep_smallest(pairs, starts, draws, limit)]
        return replace(self, items=self.items[pairs], starts=starts, times=self.times[pairs])


def private_released(corpus: "LocalCorpus", release: "Release") -> Mask:
    """Return the items of the vocabulary in a release, as bool by id."""
    words = pl.Series(values=corpus.vocabulary, dtype=pl.String)
    named = pl.Series(values=[gram for (gram,) in release.each_gram()], dtype=pl.String)
    mask: Mask = words.is_in(named.implode()).to_numpy()
    return mask


def private_missing_mass(corpus: "LocalCorpus", release: "Release") -> float:
    """Return the share of all pairs of user and item without a released item (see `PrivatePairs.missing_mass`)."""
    return PrivatePairs.of(corpus).missing_mass(private_released(corpus, release))
