"""The walk through a corpus, length by length. The walk contains the users' grams that can still be released."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from voxpop.engine.contract import ALL_LENGTHS, Shares, no_order
from voxpop.engine.data import CandidateArrays, Subset
from voxpop.engine.local.deferred import DeferredCandidates, UserBudgets
from voxpop.engine.local.weigh import Histogram, Holdings, in_weighing_order, weigh
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Bytes, Int32s, Int64s, Uint64s
from voxpop.kernels.group import rename
from voxpop.kernels.pairs import (
    find_names,
    merge_names,
    move_down,
    number_pairs,
    rename_in_runs,
    table_of,
)
from voxpop.kernels.threads import THREADS, in_order
from voxpop.privacy.individual import Charge
from voxpop.privacy.secret import Source
from voxpop.reading import arrow as widths
from voxpop.reading.arrow import check_width, numbers_of
from voxpop.reading.limited.memory import MemoryLimit, forget_pages, release_unused
from voxpop.reading.limited.sorter import copied, number_within, rename_all

_WALKED_AT_ONCE = 1 << 20
_NAMES_AT_ONCE = 1 << 20
POSITIONS_IN_PARTS = 1 << 28
"""Above this number of positions, one thread numbers the pairs, because two tables would need more memory than the
positions.
"""
PHRASES = "distinct phrases of one length"

_Cell = TypeVar("_Cell", np.int32, np.uint8)
_WalkState = dict[str, NDArray[Any]]


class MemoryLengthWalk:
    """A walk through the lengths in a single array with one int32 per position. Each length overwrites this array.

    At each length, `weigh` weighs the users' grams, `keep` keeps the released grams, and `extend` continues with the
    candidates of the next length. The name of a gram of length 1 is its id in the vocabulary. The name of a longer gram
    is `left * 2^32 + partner`. Both numbers are ranks among the kept grams of the previous length. Ranks follow the
    order of names, so every engine gives the same names.
    """

    def __init__(
        self,
        tokens: Int32s,
        user_start: Int64s,
        user_key: Uint64s,
        size: int,
        *,
        words: pa.LargeStringArray | None = None,
        limit: MemoryLimit | None = None,
        ordered: bool = True,
    ) -> None:
        """Start a walk with the tokens of all users.

        Args:
            tokens: int32, the token at each position; -1 after each document.
            user_start: int64 (users + 1), the first position of each user.
            user_key: uint64 (users), the key of each user.
            size: The number of distinct tokens.
            words: large_string, the tokens by id; None for a walk that continues after `keep`.
            limit: The memory limit of the walk; None for unlimited memory.
            ordered: Whether tokens have an order. Grams of more than one token require an order.
        """
        self._tokens, self._user_start, self._user_key = tokens, user_start, user_key
        self._size, self._words, self._limit, self._ordered = size, words, limit, ordered
        self._length, self._in_order = 1, False
        self._ids: Int32s | None = None
        self._first: Int32s | None = None
        self._names: Int64s | None = None
        self._ranges = _ranges(user_start)
        self._budgets = UserBudgets()
        self._deferred = DeferredCandidates(limit)

    @classmethod
    def of_state(cls, state: _WalkState, length: int, size: int, deferred_size: int) -> "MemoryLengthWalk":
        """Return a walk that continues another walk after its `keep`.

        Args:
            state: The state of the other walk, which is overwritten.
            length: The length of the grams that were kept.
            size: The number of grams that were kept.
            deferred_size: The number of deferred candidates.
        """
        walk = cls(state["ids"], state["user_start"], state["user_key"], size)
        walk._ids, walk._first, walk._length, walk._in_order = state["ids"], state.get("first"), length, True
        if "left" in state:
            walk._budgets = UserBudgets(state["left"])
            walk._deferred = DeferredCandidates.of(state["deferred"], state["deferred_start"], deferred_size)
        return walk

    def state(self, *, single: bool) -> _WalkState:
        """Return the arrays for `of_state`, without positions that longer grams cannot reach.

        A run of positions without a gram (or without a kept token if `single`) is shortened to one position. Users who
        have neither a gram nor a deferred candidate are removed.
        """
        ids = self._kept()
        first = ids if self._first is None else self._first
        deferred, deferred_start = self._deferred.joined(self._user_key.size)
        # Shape (users + 1,), the number of positions with a gram before each user.
        before = np.concatenate([[0], np.cumsum(ids >= 0)])[self._user_start]
        # Shape (users,), whether each user has a gram of this length or a deferred candidate.
        counts = np.diff(deferred_start)
        holding = (np.diff(before) > 0) | (counts > 0)
        # A gram can be extended only with its own position and the next position, which is the position of its partner.
        live = (first if single else ids) >= 0
        needed = live.copy()
        # One empty position remains after each run, so adjacent runs remain separate.
        needed[1:] |= live[:-1]
        needed &= np.repeat(holding, np.diff(self._user_start))
        starts = np.concatenate([[0], np.cumsum(needed)])[self._user_start]
        user_start = np.concatenate([[0], np.cumsum(np.diff(starts)[holding])]).astype(np.int64)
        state: _WalkState = {"ids": ids[needed], "user_start": user_start, "user_key": self._user_key[holding]}
        if single:
            state["first"] = first[needed]
        left = self._budgets.left(holding.size)
        if left is not None:
            state |= {"left": left[holding], "deferred": deferred[np.repeat(holding, counts)]}
            state["deferred_start"] = np.concatenate([[0], np.cumsum(counts[holding])])
        return state

    @property
    def length(self) -> int:
        """The length of the grams that `weigh` weighs."""
        return self._length

    def weigh(
        self,
        shares: Shares,
        limit: int,
        secret: Source,
        pass_name: str,
        charge: Charge | None = None,
        among: Subset | None = None,
    ) -> Histogram:
        """Distribute the weight of every user among at most `limit` distinct grams of this length.

        Before `keep`, the grams are all or some of the candidates, and the histogram uses their names. After `keep`,
        the grams are the kept grams, and the histogram uses their ranks.
        """
        if shares.sequential and not self._in_order:
            if self._ids is not None:
                raise InternalError("a walk that began without an order of users cannot have one at a later length")
            self.put_in_order(secret)
        holdings, wanted, bounds = self._holdings(), self._wanted(among), None
        if charge is not None:
            self._kept()  # raises an error before the grams of length 1 are kept
            bounds = self._budgets.pay(charge, holdings, wanted)
        histogram = weigh(holdings, shares, limit, wanted, secret, pass_name, bounds)
        forget_pages(self._tokens)
        return histogram

    def weigh_deferred(self, shares: Shares, limit: int, secret: Source, pass_name: str, charge: Charge) -> Histogram:
        """Distribute the weight of every user among at most `limit` of all deferred candidates."""
        holdings = self._deferred.holdings(self._user_key)
        return weigh(holdings, shares, limit, None, secret, pass_name, self._budgets.pay(charge, holdings, None))

    def _holdings(self) -> Holdings:
        ids = self._tokens if self._ids is None else self._ids
        words = self._words if self._ids is None else None
        users = self._user_start, self._user_key
        return Holdings(ids, *users, self._size, self._names, self._limit, words)

    def pay(self, charge: Charge, among: Subset | None = None) -> None:
        """Charge users for a pass that was weighed elsewhere."""
        self._budgets.pay(charge, self._holdings(), self._wanted(among))

    def _wanted(self, among: Subset | None) -> Bytes | None:
        if among is None:
            return None
        if self._names is None:
            raise InternalError("a subset of the candidates was requested, but this length has none")
        return self._of_names(lambda part: among.holds(part).view(np.uint8), np.uint8)

    def _of_names(self, work: Callable[[Int64s], NDArray[_Cell]], kind: type[_Cell]) -> NDArray[_Cell]:
        """Return a value for each id, computed from the names of the ids in batches."""
        if self._names is None:
            raise InternalError("names were requested, but there are none")
        parts = [self._names[begin : begin + _NAMES_AT_ONCE] for begin in range(0, self._names.size, _NAMES_AT_ONCE)]
        found, end = np.empty(self._names.size, kind), 0
        for each in in_order(work, parts):
            found[end : end + each.size] = each
            end += each.size
        return found

    def put_in_order(self, secret: Source) -> None:
        """Sort the users once in weighing order, because the order does not depend on the length."""
        users = self._tokens, self._user_start, self._user_key
        self._tokens, self._user_start, self._user_key = in_weighing_order(*users, self._limit, secret, ALL_LENGTHS)
        self._ranges, self._in_order = _ranges(self._user_start), True

    def _kept(self) -> Int32s:
        """Return the id at each position. The ids exist only after the grams of length 1 were kept."""
        if self._ids is None:
            raise InternalError("a walk continued from length 1 before the grams of length 1 were kept")
        return self._ids

    def keep(self, names: Int64s, deferred: Int64s | None = None) -> None:
        """Keep only the released grams.

        Args:
            names: int64, the names of the released grams, including grams without users, in increasing order. At length
                1, names below 0 represent words without users in this corpus.
            deferred: int64, the names of deferred candidates in increasing order. A final pass weighs them again.
        """
        check_width(names.size, PHRASES)
        if deferred is not None and deferred.size:
            if self._names is None:
                raise InternalError("deferred candidates were passed, but this length has none")
            check_width(self._deferred.size + deferred.size, PHRASES)
            # The candidates are stored before ids are overwritten, because their users are unknown afterwards.
            self._deferred.add(self._holdings(), self._ranks(deferred), deferred.size)
        # Ranks count all kept names, including names without users in this corpus, so they are public and do not depend
        # on the engine.
        ranks = self._ranks(names)
        self._names = None
        if self._ids is None:
            self._start_ids(ranks)
        elif self._limit is None:
            self._ids = self._renamed(self._ids, ranks)
        else:
            rename_all(self._ids, ranks)
        self._size = names.size

    def _ranks(self, names: Int64s) -> Int32s:
        """Return the rank of each id among the sorted names, or -1 if its name is not among them."""
        if self._names is None:
            ranks = np.full(self._size, -1, np.int32)
            # At length 1, an id is its own name, and names below 0 have no users in this corpus.
            ranks[names[names >= 0]] = np.flatnonzero(names >= 0)
            return ranks
        # There are only a few names in the argument, so the table contains these names rather than all names of this
        # length.
        table = table_of(names)
        return self._of_names(lambda part: find_names(part, table), np.int32)

    def _renamed(self, ids: Int32s, ranks: Int32s) -> Int32s:
        """Write ranks in place, one int32 per position, and remove positions that longer grams cannot reach.

        The order of users does not change, and users without grams remain, because remaining budgets are stored in this
        order.
        """
        if self._first is not None:
            # The next tokens are looked up by position, so no position is removed.
            for _ in in_order(lambda span: rename(ids[slice(*span)], ranks, ids[slice(*span)]), self._ranges):
                pass
            return ids
        before, starts = self._user_start, np.zeros_like(self._user_start)
        # The positions are cut between users, at the boundaries of the ranges.
        cuts = [int(np.searchsorted(before, begin)) for begin, _ in self._ranges[1:]]
        spans = list(pairwise([0, *cuts, before.size - 1]))
        ends = list(in_order(lambda span: rename_in_runs(ids, before, *span, ranks, starts), spans))
        end = 0
        for (first, stop), its_end in zip(spans, ends, strict=True):
            begin = int(before[first])
            move_down(ids, begin, its_end, end)
            starts[first:stop] -= begin - end
            end += its_end - begin
        starts[-1] = end
        self._user_start, self._ranges = starts, _ranges(starts)
        return ids[:end]

    def keep_words(self, words: pa.LargeStringArray, order: Source | None = None) -> None:
        """Keep only these tokens.

        Args:
            words: The distinct public tokens in order of their bytes, including tokens without users.
            order: The source of the order of users, if later weightings are sequential.
        """
        if self._words is None:
            raise InternalError("words are kept only at length 1")
        if order is not None:
            self.put_in_order(order)
        self.keep(numbers_of(pc.index_in(words, value_set=self._words), missing=-1).astype(np.int64))

    def extend(self, candidates: CandidateArrays) -> None:
        """Continue with the next length by numbering and naming the candidates among the pairs that occur.

        Raises:
            InputError: If the corpus consists of items, which have no order.
        """
        if not self._ordered:
            raise no_order()
        ids, partners, offset = self._kept(), self._kept(), 1
        if candidates.single:
            if self._first is None:
                self._first = ids.copy() if self._limit is None else copied(ids, self._limit)
            # For single-side candidates, the partner is the token that follows the gram.
            partners, offset = self._first, self._length
        need, estimates = candidates.need, candidates.estimates
        if self._limit is None:
            self._names = self._numbered(ids, partners, offset, need, estimates)
        else:
            # With a memory limit, the numbers of pairs differ from the numbers without a limit. The names do not
            # differ, and results contain only names.
            self._names = number_within(ids, partners, offset, need, estimates, self._limit)
        self._size = self._names.size
        self._length += 1

    def _numbered(self, ids: Int32s, partners: Int32s, offset: int, need: Int64s, estimates: Int64s) -> Int64s:
        """Number the pairs of each range in a separate thread."""

        def number(span: tuple[int, int]) -> Int64s:
            # Ranges are cut between users, so no gram extends from one thread's range to another's.
            names, count = number_pairs(ids, partners, offset, *span, need, estimates, widths.MOST_NUMBERS)
            check_width(count if count >= 0 else widths.MOST_NUMBERS + 1, PHRASES)
            return names[:count]

        if ids.size > POSITIONS_IN_PARTS:
            # In long arrays, nearly all pairs occur in every range, and each thread would store all of them. Therefore
            # a single thread numbers all pairs.
            return number((0, ids.size))
        return self._merged(list(in_order(number, self._ranges)))

    def _merged(self, parts: list[Int64s]) -> Int64s:
        """Replace the numbers of pairs in each range with numbers that all ranges share."""
        names = parts[0]
        for own, (begin, end) in zip(parts[1:], self._ranges[1:], strict=True):
            renamed = np.empty(own.size, np.int32)
            # Merge in the order of ranges, so numbers do not depend on which thread finishes first.
            names = merge_names(own, names, names.size, renamed)
            check_width(names.size, PHRASES)
            mine = self._kept()[begin:end]
            rename(mine, renamed, mine)
        return names

    def _start_ids(self, ranks: Int32s) -> None:
        """Write the kept tokens into a new array."""
        if self._limit is not None:
            self._ids = copied(self._tokens, self._limit, ranks)
            return
        # Allocators keep the memory of earlier rounds, which would add gigabytes to the memory of the next array.
        release_unused()
        # If users were sorted, the tokens are already a copy.
        ids = self._tokens if self._in_order else np.empty(self._tokens.size, np.int32)

        def start(begin: int) -> None:
            end = min(begin + _WALKED_AT_ONCE, ids.size)
            rename(self._tokens[begin:end], ranks, ids[begin:end])
            forget_pages(self._tokens, begin, end)

        for _ in in_order(start, range(0, ids.size, _WALKED_AT_ONCE)):
            pass
        self._ids = ids


def _ranges(user_start: Int64s) -> list[tuple[int, int]]:
    """Return one range of positions per thread, cut between users."""
    total = int(user_start[-1])
    # The cuts start from equal parts and move to the beginning of the next user.
    wanted = [total * number // THREADS for number in range(1, THREADS)]
    cuts = [int(user_start[np.searchsorted(user_start, cut)]) for cut in wanted]
    edges = [0, *cuts, total]
    return list(pairwise(edges))
