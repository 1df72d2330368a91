"""The corpus on a cluster."""

from typing import TYPE_CHECKING, NoReturn

from voxpop.errors import InputError
from voxpop.keys import Keys
from voxpop.spark.groups import in_groups
from voxpop.spark.holder import Holder
from voxpop.spark.length_walk import SparkLengthWalk
from voxpop.spark.pools import SparkPools
from voxpop.spark.round_walk import SparkRoundWalk
from voxpop.spark.tree_walk import SparkTreeWalk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.corpus.engine import Arrays, Combine, Engine, RestrictableDraws


class SparkCorpus:
    """What people hold, encoded, spread over executors: private, and it never comes to the driver.

    A user lives in one Spark partition, which holds the arrays of a `Corpus` of its users. Set union, n-grams and
    sequences take it as they take a `Corpus`.

    Attributes:
        kind: "text", "tokens", "items" or "sequence".
        reading: how its tokens were made, as in `Corpus`.
        keys: the columns that items came from, as in `Corpus`.
    """

    def __init__(self, state: "DataFrame", places: int, kind: str, reading: str, keys: Keys) -> None:
        """Take the encoded partitions, and how many they are; see `voxpop.spark.frames`."""
        self._places = places
        self.kind = kind
        self.reading = reading
        self.keys = keys
        self._holder = Holder()
        self._groups: DataFrame | None = None
        self._state = self._holder.hold(state, theirs=True)

    def round_walk(self) -> SparkRoundWalk:
        """Return the items, to be released in one round or several."""
        return SparkRoundWalk(self._state, self._in_groups)

    def pools(self, secret: "RestrictableDraws") -> SparkPools:
        """Return every user's distinct items, to be released in adaptive rounds."""
        return SparkPools(self._state, self._places, secret)

    def length_walk(self) -> SparkLengthWalk:
        """Return the walk from words to longer and longer grams."""
        return SparkLengthWalk(self._state, self._in_groups, ordered=self.kind != "items")

    def tree_walk(
        self, alphabet: tuple[str, ...], max_length: int, combine: "Combine", secret: "RestrictableDraws"
    ) -> SparkTreeWalk:
        """Return every user's one sequence, to be counted."""
        return SparkTreeWalk(self._state, alphabet, max_length, combine, secret)

    def _in_groups(self) -> "DataFrame":
        """Return the same users in few groups, for order-dependent weightings."""
        if self._groups is None:
            self._groups = self._holder.hold(in_groups(self._state, self._places))
        return self._groups

    def gathered(self) -> "Arrays":
        """Refuse: users stay on their executors.

        Raises:
            InputError: always.
        """
        raise _spread("arrays of all users")

    def __getattr__(self, name: str) -> NoReturn:
        """Say what a cluster does not hold in one piece."""
        if name in ("tokens", "user_start", "user_key", "vocabulary", "weigh", "bounded", "require", "save"):
            raise _spread(f"`{name}`")
        raise AttributeError(name)

    def __repr__(self) -> str:
        return f"SparkCorpus(kind={self.kind!r}, private)"


def _spread(what: str) -> InputError:
    return InputError(
        f"a corpus on Spark has no {what}: its users stay on their executors. Set union, n-grams, counts and sequences "
        "run on it; for heavy hitters, comparisons and baselines read a table on this machine."
    )


if TYPE_CHECKING:
    _contract: type[Engine] = SparkCorpus
