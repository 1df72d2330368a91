"""The engine contract, which defines the operations on private data that a mechanism may use.

An engine stores the private data and computes weights; a mechanism does not depend on the implementation. This machine
(`Corpus`, with or without a limit on memory) is one engine, a cluster (`voxpop.engine.spark.corpus.SparkCorpus`) is
another, and the tests have a third in plain dicts (`tests/naive/engine.py`). A new engine implements these protocols.
`tests/contracts/test_engine_contract.py` checks that, with the same secret, every engine gives the same release.

| protocol | access to |
|---|---|
| `Engine` | the weights of items (classic set union), and the walks over the private data |
| `PoolWalk` | items in adaptive rounds (set union by default) |
| `LengthWalk` | grams, length after length (n-grams, counts) |
| `TreeWalk` | one sequence per user, symbol after symbol (sequences) |
| `Weights` | a private histogram, read only with added noise |

Only the gate of a release (`voxpop.privacy.gate`) makes the noise that engines apply, with `opened`. Every engine uses
the classes of `voxpop.privacy` for users' charges, noise and draws.

Names. Every engine must use the same name for a draw. The name of an item or a token is its bytes. The name of a gram
of length k > 1 is `left * 2^32 + partner`, the ranks of its two parts among the kept grams of length k - 1 (under
single-side pruning, the partner is the rank of the token). Ranks number the kept names in increasing order from 0.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import pyarrow as pa

from voxpop.engine.data import CandidateArrays, Corpus, Subset
from voxpop.errors import InputError
from voxpop.kernels.arrays import Bytes, Int32s, Int64s
from voxpop.privacy.individual import Charge
from voxpop.privacy.opening import Opening
from voxpop.privacy.secret import Source
from voxpop.reading.keys import Keys
from voxpop.reading.typed_keys import TypedKeys

if TYPE_CHECKING:
    from voxpop.privacy.cumulative import ScoreStep
    from voxpop.privacy.path_budget import ContextNoise
    from voxpop.privacy.weightings.capped import CappedDescent

ALL_LENGTHS = "all lengths"
"""Name of the only order of users in a walk through lengths."""
WORDS_PASS = "words"
"""Purpose of the draw of each word's 64 bits, which identify the word in samples."""


def sample_of(pass_name: str) -> str:
    """Return the purpose of the samples of one weighing."""
    return f"sample/{pass_name}"


def order_of(pass_name: str) -> str:
    """Return the purpose of one order of users."""
    return f"order/{pass_name}"


def part_of(pass_name: str) -> str:
    """Return the purpose of the draws that decide which users take part in one round."""
    return f"part/{pass_name}"


class Shares(Protocol):
    """A weighting with all its numbers, which divides one user's weight among the user's items."""

    @property
    def sequential(self) -> bool:
        """Whether a user's shares depend on the weights added by earlier users."""

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, bounds: Int64s | None = None) -> None:
        """Add bounded sets to the histogram, in order and in place.

        Args:
            histogram: int64 (ids), weight by id, in units of the weighting's grid.
            items: int32, distinct ids of one user after the other. After `LengthWalk.keep` they are ranks of kept
                grams, otherwise numbers that the engine assigns.
            starts: int64 (users + 1); user j has `items[starts[j]:starts[j + 1]]`.
            bounds: int64 (users), the contribution bound of each user to the histogram, from `Charge.bounds`. With
                None it is 1 for every user.
        """


class Weights(Protocol):
    """The weight of every item of the bounded sets, which is private and therefore only read with noise.

    Weights are int64 in units of the weighting's grid. Their sum over users does not depend on the order of users,
    unless the weighting is sequential. On Spark, which adds up blocks of users, a sequential weighting runs in each
    block separately.
    """

    def chosen(self, decision: Opening) -> Int64s:
        """Return the items that pass, in increasing order.

        At length 1 these are numbers for `texts`, otherwise names of grams. Only items with weight are tested, so an
        item without weight is never returned.
        """

    def noisy_levels(self, levels: Opening, spurious_names: Int64s, theirs: Int64s) -> tuple[Int64s, Int64s]:
        """Return the names with a level above 0, in increasing order, and their levels.

        Args:
            levels: Number of cutpoints that each item with weight reaches.
            spurious_names: Names, in increasing order, that have a level if they have no weight. They are simulated
                and therefore public.
            theirs: int64 (spurious), the level of each spurious candidate.
        """

    def texts(self, ids: Int64s) -> pa.LargeStringArray:
        """Return the words with these ids, which `chosen` or `noisy_levels` returned at length 1."""

    def measured(self, noise: Opening, size: int) -> Int64s:
        """Return the noisy weight of every rank below `size`, including ranks without weight."""


class PoolWalk(Protocol):
    """Items in adaptive rounds.

    A `first_round` is followed by one `draw` of each user's pool, and then by later rounds with `advance`. Scores and
    the set of undecided items remain inside the engine. Users weigh in the order of "order/adaptive rounds/length 1" in
    all rounds.
    """

    def sizes(self, edges: Sequence[int]) -> Weights:
        """Count the users by their number of distinct items, before the first round.

        Args:
            edges: Edges of the classes, in increasing order. The class of a user is the number of edges that are at
                most the user's number of items. Users without items are in no class.

        Returns:
            The number of users by class, from 0 to `len(edges)`.
        """

    def first_round(self, shares: Shares, limit: int, decision: Opening, pass_name: str) -> None:
        """Weigh at most `limit` distinct items of each user; release the items that pass, and exclude them."""

    def recognise(self, listed: Iterable[pa.LargeStringArray]) -> None:
        """Take a public list of items, in parts, after the first round and before pools are drawn.

        Listed items are in the pools in addition to `size` unlisted ones, have no caps, and are decided by
        `step.known`, so engines keep the largest level of each.
        """

    def draw(self, size: int, pass_name: str) -> None:
        """Draw a pool of at most `size` remaining items for every user, once and uniformly."""

    def advance(self, shares: "CappedDescent", step: "ScoreStep", pass_name: str) -> None:
        """Weigh at most the limit of undecided items from each user's pool, in a new draw, then decide.

        If users take part at random, the draw is "part/PASS" by the user's key and 0. The step is applied to every
        undecided item of every pool, drawn or not, because the proof needs its noise.
        """

    def released(self) -> pa.LargeStringArray:
        """Return the released items, in order of bytes; of listed items only those released in the first round."""

    def levels(self) -> tuple[pa.LargeStringArray, Bytes]:
        """Return the listed items of pools that have reached a level above 0, in any order, and their levels."""


class LengthWalk(Protocol):
    """Grams by length: `weigh` the users' grams, `keep` the released ones, `extend` to the next candidates.

    After `keep` or `keep_words` the kept grams can be weighed again, by their ranks. If a weighing has a charge, it
    reduces the users' remaining budgets permanently. At the beginning of a walk no user has been charged.
    """

    @property
    def length(self) -> int:
        """Length of the grams that are weighed now."""

    def weigh(
        self,
        shares: Shares,
        limit: int,
        secret: Source,
        pass_name: str,
        charge: Charge | None = None,
        among: Subset | None = None,
    ) -> Weights:
        """Distribute the weight of every user over at most `limit` of its distinct grams of this length.

        Same as `Engine.weigh`, but a sequential weighting uses the order of "order/all lengths". From the first
        `keep` on, a weighing may have a charge, and all or some of the candidates may be weighed more than once.
        """

    def keep(self, names: Int64s, deferred: Int64s | None = None) -> None:
        """Keep only the released grams, including grams that no user has.

        Args:
            names: Names of the released grams, in increasing order. At length 1 they are the result of the last
                weighing's `chosen` or `noisy_levels`.
            deferred: Names, in increasing order, of other candidates of this length, for `weigh_deferred`.
        """

    def weigh_deferred(self, shares: Shares, limit: int, secret: Source, pass_name: str, charge: Charge) -> Weights:
        """Distribute the weight of every user over at most `limit` of all candidates that were deferred.

        Candidates are named by numbers from 0, in the order of their deferral. The grams of a user are ordered by
        length, and within one length by their first occurrence in the user's documents.
        """

    def keep_words(self, words: pa.LargeStringArray, order: Source | None = None) -> None:
        """Keep only public tokens, including tokens that no user has.

        Args:
            words: The tokens, distinct and in order of bytes.
            order: The source of the order of users, if later weightings are sequential.
        """

    def extend(self, candidates: CandidateArrays) -> None:
        """Continue with the next length and the candidates among the pairs that at least one user has.

        Raises:
            InputError: If the data have no order.
        """


CountKind = Literal["lengths", "variety", "following"]


class TreeWalk(Protocol):
    """One sequence per user, down a tree of contexts.

    At the beginning every step is under the empty context. A step is a symbol of a sequence or its end; the end of a
    sequence of the maximum length is not a step. `released` returns the counts of symbols after the nodes with noise.
    Then `lengthen` moves each step to a longer context.
    """

    def count_first(self, steps: int) -> None:
        """Exclude all but the first steps of each sequence from "following", before the first of these counts.

        Args:
            steps: The number of first steps of each sequence that count. The end of a sequence is also a step.
        """

    def released(self, counted: CountKind, noise: "ContextNoise", *given: Int64s) -> Int64s:
        """Count, and return the noisy counts (nodes, width).

        Args:
            counted: "lengths" for the sequences by class of length, `given` being the first length of each class;
                "variety" for the numbers of symbols, among the first `given[0]` of their sequence, that differ from
                all before and, if `given[1]` is 2, that equal the one before; "following" for the steps under each
                node of the last level by their symbol (the last symbol is the end). The first two are available only
                before contexts are lengthened.
            noise: The noise of these counts.
            given: The classes that are counted, for "lengths" and "variety".
        """

    def lengthen(self, depth: int, keys: Int64s, longer: Int32s, others: Int32s) -> None:
        """Move each step under the node of a context that reaches one symbol further back.

        Args:
            depth: Current length of the contexts. The symbol `depth + 1` before the step selects the new node.
            keys: int64, distinct `node * width + symbol`; the symbol `width - 1` precedes every sequence.
            longer: int32 by key, number of the new node.
            others: int32 by old node, the new node of steps that have none of its keys; -1 if they are not counted.
        """


@runtime_checkable
class Engine(Protocol):
    """The object that contains the private data and is never part of a release."""

    @property
    def kind(self) -> str:
        """One of "text", "tokens", "items" and "sequence"; only items have no order."""

    @property
    def token_source(self) -> str:
        """The tokenizer of the data (public), or "" if it is unknown."""

    @property
    def keys(self) -> Keys:
        """The columns that items were read from, which are public like the schema; empty for words."""

    @property
    def families(self) -> tuple[str, ...]:
        """The family of user ids by column, which is public like the schema; "" for a column without a declaration."""

    def weigh(self, shares: Shares, limit: int, secret: Source, pass_name: str) -> Weights:
        """Distribute the weight of every user over at most `limit` distinct items.

        Args:
            shares: How a user's weight is shared.
            limit: Maximum number of items per user; a user with more items draws `limit` of them uniformly.
            secret: Source of the sample ("sample/PASS" by the user's key and the item's 64 bits of "words") and, if
                the weighting is sequential, of the order of users ("order/PASS" by the user's key).
            pass_name: Name of this pass of the release; every pass makes new draws.
        """

    def pools(self, secret: Source) -> PoolWalk:
        """Return the items, to be released in adaptive rounds.

        Args:
            secret: Source of the order, the pools and the draws of every round ("sample/PASS" by the user's key and
                the item's 64 bits of "words").
        """

    def length_walk(self) -> LengthWalk:
        """Return the walk from words to grams of increasing length."""

    def tree_walk(
        self, alphabet: tuple[str, ...], max_length: int, secret: Source, other: str | None = None
    ) -> TreeWalk:
        """Return every user's one sequence, to be counted.

        Args:
            alphabet: Distinct public symbols. Other tokens are removed before anything is counted or cut.
            max_length: Maximum number of symbols per user.
            secret: Source of the draw ("sequences/sample" by the user's key).
            other: A symbol of the alphabet that replaces all other tokens, so that they are not removed.
        """

    def only(self, keys: TypedKeys, listed: pa.LargeStringArray | None) -> "Engine":
        """Return the same users with either their single or some of their joint typed keys.

        Args:
            keys: The columns and combinations.
            listed: Public tokens; a joint key is kept if all its single values are listed. None keeps single keys.
        """

    def with_more(self, items: int) -> "Engine":
        """Return only the users with more than a given number of distinct items.

        Args:
            items: The largest number of items of the other users.
        """

    def row_shares(self, listed: pa.LargeStringArray, columns: int, unit: int) -> Weights:
        """Add up the shares of each user's typed keys that are on a public list, row by row.

        Args:
            listed: The tokens on the list.
            columns: Number of columns of the table.
            unit: The weight of a share of 1.

        Returns:
            The sums of shares. To rank 2 c, each user adds the share of its keys of column c that are on the list,
            rounded down; repeated keys count each time. To rank 2 c + 1, it adds the share of those that are not.
        """

    def nights(self, state: Any, secret: Source, *, first: bool) -> Any:
        """Return the private state of a series in the form of this engine.

        Args:
            state: State after the nights so far; before the first night an empty `NightlyPools`.
            secret: Secret of the series.
            first: Whether no night has run yet.

        Raises:
            InputError: If the state is on another engine.
            MemoryLimitError: If the night would exceed the memory limit of the data.
        """

    def gathered(self) -> Any:
        """Return all users in arrays on this machine: a `LocalCorpus`.

        Raises:
            InputError: If the users are not on one machine.
        """


def check_engine(data: object) -> Engine:
    """Return the engine of the data that was passed to `release`.

    Raises:
        InputError: If the data has not been read, such as a path or a table.
    """
    engine = data._engine if isinstance(data, Corpus) else data
    if not isinstance(engine, Engine):
        raise InputError(
            "the data must be an object that voxpop.read or voxpop.load_corpus returned, got a value of type "
            f"{type(data).__name__}. Read it first: voxpop.read(source, user=..., text=...)."
        )
    return engine


def check_ordered(engine: Engine) -> None:
    """Check that the data have an order, which grams need.

    Raises:
        InputError: If the data are items, which have no order.
    """
    if engine.kind == "items":
        raise no_order()


def elsewhere(place: str) -> InputError:
    """Build the error raised for rows of a series if its state is on another engine."""
    return InputError(f"the state of this series is {place}. Read the rows of every night there.")


def no_order() -> InputError:
    """Build the error raised for phrases or sequences of unordered items."""
    return InputError(
        "phrases and sequences need an order: read the data with text=, tokens= or sequence=, not items=."
    )
