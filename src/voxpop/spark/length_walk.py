"""The walk through lengths on a cluster: each partition walks, released sets are broadcast in between."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa

from voxpop.arrays import Int64s
from voxpop.corpus.draws import ALL_LENGTHS, order_of
from voxpop.corpus.engine import no_order
from voxpop.errors import InternalError
from voxpop.spark.closures import closure
from voxpop.spark.frames import STATE, Arrays, Task, run_with_public
from voxpop.spark.histogram import SparkHistogram
from voxpop.spark.holder import Holder
from voxpop.spark.round_walk import public_words
from voxpop.spark.tasks import (
    Paying,
    Since,
    keep_next,
    keep_words,
    weigh_aside,
    weigh_kept,
    weigh_next,
    weigh_words,
)
from voxpop.spark.weighings import restricted_weighing, weigh_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.corpus.draws import Draws
    from voxpop.corpus.engine import Candidates, Price, RestrictableDraws, Shares
    from voxpop.corpus.subset import Subset


class SparkLengthWalk:
    """What `MemoryLengthWalk` answers: `weigh`, `keep` what was released, `extend` by the next candidates.

    The state of a length is a DataFrame of arrays, made from that of the length before and from public sets, and kept
    on the executors while the next length needs it. What is lost is made again: from the length before, or from the
    source.
    """

    def __init__(self, state: "DataFrame", in_groups: "Callable[[], DataFrame]", *, ordered: bool) -> None:
        """Begin with the tokens of all partitions.

        Args:
            state: of each partition.
            in_groups: the same users in few groups; see `voxpop.spark.groups`.
            ordered: whether tokens have an order.
        """
        self._state = state
        self._in_groups = in_groups
        self._ordered = ordered
        self._length = 1
        self._size: int | None = None
        self._candidates: Candidates | None = None
        self._words: SparkHistogram | None = None
        self._order: Draws | None = None
        self._holder = Holder()
        self._paid: list[Paying] = []
        self._subsets: list[Subset] = []
        self._aside_size = 0

    @property
    def length(self) -> int:
        """Length of the grams that are weighed now."""
        return self._length

    def weigh(
        self,
        shares: "Shares",
        limit: int,
        secret: "RestrictableDraws",
        pass_name: str,
        price: "Price | None" = None,
        among: "Subset | None" = None,
    ) -> SparkHistogram:
        """Let every user share its weight over at most `limit` of its distinct grams of this length."""
        given = shares, limit, secret, pass_name
        if self._size is None:
            if price is not None or among is not None:
                raise InternalError("users were to pay for a pass before words were kept; please report the call.")
            if shares.sequential:
                self._state = self._in_groups()
                self._order = secret.restrict(order_of(ALL_LENGTHS))
            weighing = restricted_weighing(*given, order=ALL_LENGTHS)
            self._words = weigh_by(self._state, closure(weigh_words, weighing=weighing), words=True)
            return self._words
        if shares.sequential and self._order is None:
            raise InternalError("a walk that began without an order of users cannot have one at a later length.")
        since, paying = self._since(), self._paying(price, among)
        weighing = restricted_weighing(*given, order=ALL_LENGTHS, paying=paying)
        if self._candidates is None:
            work: Task = closure(weigh_kept, weighing=weighing, since=since, size=self._size)
            return weigh_by(self._state, work, words=False)
        work = closure(weigh_next, weighing=weighing, since=since)
        return weigh_by(self._state, work, words=False, public=self._public())

    def weigh_aside(
        self, shares: "Shares", limit: int, secret: "RestrictableDraws", pass_name: str, price: "Price"
    ) -> SparkHistogram:
        """Let every user share its weight over at most `limit` of all candidates that were set aside."""
        if self._size is None or self._candidates is not None:
            raise InternalError("candidates set aside were weighed in the middle of a length; please report the call.")
        since, paying = self._since(), self._paying(price, None)
        weighing = restricted_weighing(shares, limit, secret, pass_name, order=ALL_LENGTHS, paying=paying)
        work: Task = closure(weigh_aside, weighing=weighing, since=since, size=self._size)
        return weigh_by(self._state, work, words=False)

    def _since(self) -> Since:
        """Return what a task needs to know beside the state."""
        between = self._candidates is not None
        single = self._candidates is not None and self._candidates.single
        return Since(self._length - between, single, self._aside_size, tuple(self._paid))

    def _paying(self, price: "Price | None", among: "Subset | None") -> Paying | None:
        """Remember that users pay for a pass."""
        if price is None:
            if among is not None:
                raise InternalError("some candidates were weighed without a price; please report the call.")
            return None
        number = None if among is None else len(self._subsets)
        self._subsets += [] if among is None else [among]
        paying = Paying(price, self._candidates is None, number)
        self._paid.append(paying)
        return paying

    def keep(self, names: Int64s, aside: Int64s | None = None) -> None:
        """Forget every gram but these."""
        if self._candidates is None:
            if self._words is None:
                raise InternalError("words were kept before they were weighed.")
            self.keep_words(self._words.texts(names))
            return
        public = {**self._public(), "names": names}
        if aside is not None and aside.size:
            public["aside"] = aside
        self._go_on(closure(keep_next, since=self._since()), public, names.size)
        self._aside_size += 0 if aside is None else aside.size

    def keep_words(self, words: pa.LargeStringArray) -> None:
        """Forget every token but these: distinct, in order of bytes, also those that nobody holds."""
        self._go_on(closure(keep_words, order=self._order), public_words(words), len(words))

    def _go_on(self, work: Task, public: Arrays, size: int) -> None:
        """Make the state of so many kept grams."""
        self._state = self._holder.hold(run_with_public(self._state, work, public, STATE))
        self._size, self._candidates, self._words = size, None, None
        self._paid, self._subsets = [], []

    def extend(self, candidates: "Candidates") -> None:
        """Go on to the next length: these are its candidates."""
        if not self._ordered:
            raise no_order()
        if self._size is None:
            raise InternalError("a walk went on from length 1 before the grams of length 1 were kept.")
        self._candidates = candidates
        self._length += 1

    def _public(self) -> Arrays:
        if self._candidates is None:
            raise InternalError("candidates were to be sent where there are none.")
        public: Arrays = {"need": self._candidates.need, "estimates": self._candidates.estimates}
        for number, each in enumerate(self._subsets):
            public |= {f"need/{number}": each.rule.need, f"estimates/{number}": each.rule.estimates}
            if each.further is not None:
                public[f"further/{number}"] = each.further
        return public
