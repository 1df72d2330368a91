"""Items on a cluster, round after round."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from voxpop.arrays import Int64s
from voxpop.arrow import text_buffers
from voxpop.errors import InternalError
from voxpop.spark.closures import closure
from voxpop.spark.frames import Arrays
from voxpop.spark.histogram import SparkHistogram
from voxpop.spark.tasks import weigh_remaining
from voxpop.spark.weighings import restricted_weighing, weigh_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.corpus.engine import RestrictableDraws, Shares


class SparkRoundWalk:
    """What `MemoryRoundWalk` answers: `weigh` what is left, `leave_out` what was released."""

    def __init__(self, state: "DataFrame", in_groups: "Callable[[], DataFrame]") -> None:
        """Take the encoded partitions, and how to get their users in groups; see `voxpop.spark.groups`."""
        self._state = state
        self._in_groups = in_groups
        self._released: list[pa.LargeStringArray] = []
        self._last: SparkHistogram | None = None

    def weigh(self, shares: "Shares", limit: int, secret: "RestrictableDraws", pass_name: str) -> SparkHistogram:
        """Let every user share its weight over at most `limit` distinct items that are left."""
        public = public_words(self.released()) if self._released else None
        weighing = restricted_weighing(shares, limit, secret, pass_name, order=pass_name)
        state = self._in_groups() if shares.sequential else self._state
        self._last = weigh_by(state, closure(weigh_remaining, weighing=weighing), words=True, public=public)
        return self._last

    def leave_out(self, ids: Int64s) -> None:
        """Forget the items that the last weighing released."""
        if self._last is None:
            raise InternalError("nothing was weighed before something was left out; please report.")
        self._released.append(self._last.texts(ids))

    def released(self) -> pa.LargeStringArray:
        """Return what was left out, in order of bytes."""
        words = pa.concat_arrays([pa.array([], pa.large_string()), *self._released])
        return words.take(pc.array_sort_indices(words.cast(pa.large_binary())))


def public_words(words: pa.LargeStringArray) -> Arrays:
    """Return released words as arrays to be sent."""
    data, starts = text_buffers(words)
    return {"word_data": data, "word_starts": starts}
