"""The corpus on a cluster."""

from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from voxpop.engine.contract import elsewhere
from voxpop.engine.spark.frames import (
    Holder,
    closure,
    run_with_public,
    word_arrays,
)
from voxpop.engine.spark.pools import SparkPools
from voxpop.engine.spark.tasks import choose_keys, in_groups, keep_users, weigh_rows
from voxpop.engine.spark.walks import SparkLengthWalk, SparkTreeWalk, weigh_by, weighed_items
from voxpop.errors import InputError
from voxpop.reading.keys import Keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.engine.contract import Engine, Shares
    from voxpop.engine.spark.histogram import SparkHistogram
    from voxpop.engine.spark.nights import SparkNights
    from voxpop.privacy.secret import Source
    from voxpop.reading.typed_keys import TypedKeys


class SparkCorpus:
    """The encoded data of users, distributed over executors. The data is private and never reaches the driver.

    All rows of a user are in one Spark partition. A partition contains the arrays of a `Corpus` of its users. Set
    union, n-grams and sequences use a `SparkCorpus` in the same way as a `Corpus`.

    Attributes:
        kind: "text", "tokens", "items" or "sequence".
        token_source: The description of the tokenizer, as in `LocalCorpus`.
        keys: The source columns of items, as in `LocalCorpus`.
        families: The type families of the user ids, as in `LocalCorpus`.
    """

    def __init__(
        self, state: "DataFrame", places: int, kind: str, token_source: str, keys: Keys, families: dict[str, str]
    ) -> None:
        """Store the encoded partitions and their number; see `voxpop.engine.spark.frames`."""
        self._places = places
        self.kind = kind
        self.token_source = token_source
        self.keys = keys
        self.families = families
        self._holder = Holder()
        self._groups: DataFrame | None = None
        self._state = self._holder.hold(state, theirs=True)

    def weigh(self, shares: "Shares", limit: int, secret: "Source", pass_name: str) -> "SparkHistogram":
        """Distribute the weight of every user among at most `limit` distinct items."""
        state = self._in_groups() if shares.sequential else self._state
        return weighed_items(state, shares, limit, secret, pass_name, pass_name)

    def pools(self, secret: "Source") -> SparkPools:
        """Return every user's distinct items, for release in adaptive rounds."""
        return SparkPools(self._state, self._places, secret)

    def length_walk(self) -> SparkLengthWalk:
        """Return the walk from words to grams of increasing length."""
        return SparkLengthWalk(self._state, self._in_groups, ordered=self.kind != "items")

    def tree_walk(
        self, alphabet: tuple[str, ...], max_length: int, secret: "Source", other: str | None = None
    ) -> SparkTreeWalk:
        """Return the walk that counts one sequence per user."""
        return SparkTreeWalk(self._state, alphabet, max_length, secret, other)

    def only(self, keys: "TypedKeys", listed: pa.LargeStringArray | None) -> "SparkCorpus":
        """Return the same users with their single keys, or with the joint keys of listed values."""
        public = {} if listed is None else word_arrays(listed)
        state = run_with_public(self._state, closure(choose_keys, keys=keys), public)
        return SparkCorpus(state, self._places, "items", self.token_source, self.keys, self.families)

    def with_more(self, items: int) -> "SparkCorpus":
        """Return only the users with more than a given number of distinct items."""
        state = run_with_public(self._state, closure(keep_users, items=items), {})
        return SparkCorpus(state, self._places, self.kind, self.token_source, self.keys, self.families)

    def row_shares(self, listed: pa.LargeStringArray, columns: int, unit: int) -> "SparkHistogram":
        """Add up, by column, each user's shares of keys that are on a public list and of all other keys."""
        work = closure(weigh_rows, columns=columns, unit=unit)
        return weigh_by(self._state, work, word_arrays(listed), words=False)

    def _in_groups(self) -> "DataFrame":
        """Return the same users in a few groups, for order-dependent weightings."""
        if self._groups is None:
            self._groups = self._holder.hold(in_groups(self._state, self._places))
        return self._groups

    def nights(self, state: Any, secret: "Source", *, first: bool) -> "SparkNights":
        """Return the private state of a series, on executors; see `Engine.nights`."""
        from voxpop.engine.spark.nights import SparkNights

        # A series begins in memory, and moves to the engine of its first rows.
        if first and not isinstance(state, SparkNights):
            return SparkNights.empty(self, secret)
        if not isinstance(state, SparkNights):
            raise elsewhere("on this machine")
        return state

    def gathered(self) -> NoReturn:
        """Raise an error, because users remain on their executors.

        Raises:
            InputError: Always.
        """
        raise InputError(
            "a corpus on Spark has no arrays of all users, because users remain on their executors. Items, "
            "n-grams, counts and sequences run on it. For heavy hitters and comparisons, read a table on this machine."
        )


if TYPE_CHECKING:
    _contract: type[Engine] = SparkCorpus
