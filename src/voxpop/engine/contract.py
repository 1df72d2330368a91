"""The engine contract, which defines the operations on private data that a mechanism may use.

An engine stores the private data and computes weights. A mechanism does not depend on the implementation of the engine.
There is an engine for this machine (`Corpus`, with or without a memory limit), one for a cluster
(`voxpop.engine.spark.corpus.SparkCorpus`), and one for tests, which uses plain dicts (`tests/naive/engine.py`). A new
engine implements these protocols. `tests/contracts/test_engine_contract.py` checks that every engine gives the same
release for the same secret.

| protocol | access to |
|---|---|
| `Engine` | the weights of items (classic set union), and the walks over the private data |
| `PoolWalk` | items in adaptive rounds (set union by default) |
| `LengthWalk` | grams, length after length (n-grams, counts) |
| `TreeWalk` | one sequence per user, symbol after symbol (sequences) |
| `Weights` | a private histogram, which is read only with added noise |

Only the gate of a release (`voxpop.privacy.gate`) creates the noise that engines apply with `opened`. Every engine uses
the classes of `voxpop.privacy` for users' charges, noise and draws.

Names identify draws, so every engine must use the same names. The name of an item or a token consists of its bytes. The
name of a gram of length k > 1 is `left * 2^32 + partner`. Both numbers are ranks among the kept grams of length k - 1
(with single-side pruning, the partner is the rank of the token). Ranks number the kept names in increasing order,
starting with 0.
"""

from collections.abc import Iterable, Mapping, Sequence
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
"""The name of the only order of users in a walk through lengths."""
WORDS_PASS = "words"
"""The purpose of the draw of each word's 64 bits, which identify the word in samples."""


def sample_of(pass_name: str) -> str:
    """Return the purpose of the samples that one weighing draws."""
    return f"sample/{pass_name}"


def order_of(pass_name: str) -> str:
    """Return the purpose of the draws that order the users."""
    return f"order/{pass_name}"


def part_of(pass_name: str) -> str:
    """Return the purpose of the draws that decide which users take part in a round."""
    return f"part/{pass_name}"


class Shares(Protocol):
    """A weighting with all its parameters. The weighting divides each user's weight among the user's items."""

    @property
    def sequential(self) -> bool:
        """Whether a user's shares depend on the weights that earlier users added."""

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, bounds: Int64s | None = None) -> None:
        """Add bounded sets to the histogram, in order and in place.

        Args:
            histogram: int64 (ids), the weight by id, in units of the weighting's grid.
            items: int32, the distinct ids of each user, concatenated. After `LengthWalk.keep`, ids are ranks of kept
                grams. Before that, ids are numbers that the engine assigns.
            starts: int64 (users + 1). User j has `items[starts[j]:starts[j + 1]]`.
            bounds: int64 (users), the contribution bound of each user, from `Charge.bounds`. If None, the bound is 1
                for every user.
        """


class Weights(Protocol):
    """The weight of every item of the bounded sets. Weights are private, so they are only read with noise.

    Weights are int64, in units of the weighting's grid. The sum of weights over users does not depend on the order of
    users, unless the weighting is sequential. Spark adds up blocks of users, so a sequential weighting runs in each
    block separately.
    """

    def chosen(self, decision: Opening) -> Int64s:
        """Return the items that pass the decision, in increasing order.

        At length 1, the result contains ids, which `texts` maps to words. At longer lengths, the result contains names
        of grams. Only items with weight are tested, so an item without weight is never returned.
        """

    def noisy_levels(self, levels: Opening, spurious_names: Int64s, theirs: Int64s) -> tuple[Int64s, Int64s]:
        """Return the names with a level above 0, in increasing order, and their levels.

        Args:
            levels: A function that returns the number of cutpoints that each item with weight reaches.
            spurious_names: The names, in increasing order, that are returned with a level if they have no weight. These
                names are simulated and therefore public.
            theirs: int64 (spurious), the level of each of these names.
        """

    def texts(self, ids: Int64s) -> pa.LargeStringArray:
        """Return the words with these ids, which `chosen` or `noisy_levels` returned at length 1."""

    def measured(self, noise: Opening, size: int) -> Int64s:
        """Return the noisy weight of every rank below `size`, including ranks without weight."""


class PoolWalk(Protocol):
    """The items in adaptive rounds.

    `first_round` is followed by a single `draw` of each user's pool, and then by later rounds with `advance`. Scores
    and the set of undecided items remain inside the engine. In all rounds, users give weight in the order of
    "order/adaptive rounds/length 1".
    """

    def sizes(self, edges: Sequence[int]) -> Weights:
        """Count the users by their number of distinct items, before the first round.

        Args:
            edges: The edges of the classes, in increasing order. The class of a user is the number of edges that are at
                most the user's number of items. Users without items are not in any class.

        Returns:
            The number of users by class, from 0 to `len(edges)`.
        """

    def first_round(self, shares: Shares, limit: int, decision: Opening, pass_name: str) -> None:
        """Weigh at most `limit` distinct items of each user.

        Release the items that pass, and exclude them from later rounds.
        """

    def recognise(self, listed: Iterable[pa.LargeStringArray]) -> None:
        """Set a public list of items, in parts, after the first round and before pools are drawn.

        A pool contains listed items in addition to `size` other items. Listed items have no caps. `step.known` decides
        about them, so engines keep the largest level of each listed item.
        """

    def draw(self, size: int, pass_name: str) -> None:
        """Draw a pool of at most `size` remaining items for every user, uniformly and only once."""

    def advance(self, shares: "CappedDescent", step: "ScoreStep", pass_name: str) -> None:
        """Weigh newly drawn undecided items of each user's pool, and then decide about the items in pools.

        Each user draws at most the limit. If users take part at random, the draw of the users has the purpose
        "part/PASS" and depends on the user's key and 0. The step is applied to every undecided item of every pool, even
        if no user drew the item, because the proof requires the noise of the step.
        """

    def released(self) -> pa.LargeStringArray:
        """Return the released items, in the order of their bytes.

        The result contains listed items only if the first round released them.
        """

    def levels(self) -> tuple[pa.LargeStringArray, Bytes]:
        """Return the listed items in pools that have reached a level above 0, in any order, and their levels."""


class LengthWalk(Protocol):
    """The walk through grams by length.

    `weigh` gives weight to the users' grams, `keep` keeps the released grams, and `extend` continues with the next
    candidates.

    After `keep` or `keep_words`, the kept grams can be weighed again, by their ranks. If a weighing has a charge, the
    charge reduces the users' remaining budgets permanently. At the beginning of a walk, no user has been charged.
    """

    @property
    def length(self) -> int:
        """The length of the grams that are weighed now."""

    def weigh(
        self,
        shares: Shares,
        limit: int,
        secret: Source,
        pass_name: str,
        charge: Charge | None = None,
        among: Subset | None = None,
    ) -> Weights:
        """Distribute the weight of every user among at most `limit` of the user's distinct grams of this length.

        This method is like `Engine.weigh`, but a sequential weighting uses the order "order/all lengths". After the
        first `keep`, a weighing may have a charge, and all or some of the candidates may be weighed more than once.
        """

    def keep(self, names: Int64s, deferred: Int64s | None = None) -> None:
        """Keep only the released grams, including grams that no user has.

        Args:
            names: The names of the released grams, in increasing order. At length 1, they are the result of `chosen` or
                `noisy_levels` for the last weighing.
            deferred: The names, in increasing order, of other candidates of this length, for `weigh_deferred`.
        """

    def weigh_deferred(self, shares: Shares, limit: int, secret: Source, pass_name: str, charge: Charge) -> Weights:
        """Distribute the weight of every user among at most `limit` of all deferred candidates.

        Candidates are named by numbers from 0, in order of deferral. The grams of a user are ordered by length, and
        within one length by their first occurrence in the user's documents.
        """

    def keep_words(self, words: pa.LargeStringArray, order: Source | None = None) -> None:
        """Keep only public tokens, including tokens that no user has.

        Args:
            words: The distinct tokens, in the order of their bytes.
            order: The source of the order of users, if later weightings are sequential.
        """

    def extend(self, candidates: CandidateArrays) -> None:
        """Continue with the next length and with the candidates among the pairs that at least one user has.

        Raises:
            InputError: The data have no order.
        """


CountKind = Literal["lengths", "variety", "following"]


class TreeWalk(Protocol):
    """One sequence per user, counted along a tree of contexts.

    At the beginning, every step is under the empty context. A step is a symbol of a sequence or its end. The end of a
    sequence of the maximum length is not a step. `released` returns the noisy counts of symbols after the nodes. Then
    `lengthen` moves each step to a longer context.
    """

    def count_first(self, steps: int) -> None:
        """Count only the first steps of each sequence for "following". Call this before the first of these counts.

        Args:
            steps: The number of steps that are counted from the start of each sequence. The end of a sequence is also a
                step.
        """

    def released(self, counted: CountKind, noise: "ContextNoise", *given: Int64s) -> Int64s:
        """Count, and return the noisy counts (nodes, width).

        Args:
            counted: The statistic. "lengths" counts sequences by length class, and `given` contains the first length of
                each class. "variety" counts, among the first `given[0]` symbols of each sequence, the symbols that
                differ from all earlier symbols and, if `given[1]` is 2, also the symbols that equal the previous
                symbol. "following" counts the steps under each node of the last level by their symbol (the last symbol
                is the end). The first two statistics are available only before contexts are lengthened.
            noise: The noise of these counts.
            given: The further arguments of "lengths" and "variety", as described above.
        """

    def lengthen(self, depth: int, keys: Int64s, longer: Int32s, others: Int32s) -> None:
        """Move each step to the node of a context that reaches one symbol further back.

        Args:
            depth: The current length of the contexts. The symbol `depth + 1` positions before the step selects the new
                node.
            keys: int64, the distinct keys `node * width + symbol`. The symbol `width - 1` precedes every sequence.
            longer: int32 by key, the index of the new node.
            others: int32 by old node, the index of the new node of steps without a key, or -1 if these steps are not
                counted.
        """


@runtime_checkable
class Engine(Protocol):
    """The object that contains the private data and is never part of a release."""

    @property
    def kind(self) -> str:
        """The kind of the data, which is "text", "tokens", "items" or "sequence". Only items have no order."""

    @property
    def token_source(self) -> str:
        """The tokenizer of the data, which is public, or "" if it is unknown."""

    @property
    def keys(self) -> Keys:
        """The source columns of items, which are public like the schema; empty for words."""

    @property
    def families(self) -> Mapping[str, str]:
        """The type family of the user ids by column, which is public like the schema.

        The family is "" for a column without a declared type.
        """

    def weigh(self, shares: Shares, limit: int, secret: Source, pass_name: str) -> Weights:
        """Distribute the weight of every user among at most `limit` distinct items.

        Args:
            shares: The weighting, which divides a user's weight.
            limit: The maximum number of items per user. A user with more items draws `limit` of them uniformly.
            secret: The source of the sample, which is drawn for "sample/PASS" from the user's key and the item's 64
                bits of "words". If the weighting is sequential, the secret also determines the order of users
                ("order/PASS" by the user's key).
            pass_name: The name of this pass of the release. Every pass makes new draws.
        """

    def pools(self, secret: Source) -> PoolWalk:
        """Return the walk over the items in adaptive rounds.

        Args:
            secret: The source of the order, the pools and the draws of every round ("sample/PASS" by the user's key and
                the item's 64 bits of "words").
        """

    def length_walk(self) -> LengthWalk:
        """Return the walk from words to grams of increasing length."""

    def tree_walk(
        self, alphabet: tuple[str, ...], max_length: int, secret: Source, other: str | None = None
    ) -> TreeWalk:
        """Return one sequence per user, for counting.

        Args:
            alphabet: The distinct public symbols. Other tokens are removed before sequences are counted or cut.
            max_length: The maximum number of symbols per user.
            secret: The source of the draw ("sequences/sample" by the user's key).
            other: A symbol of the alphabet that replaces all other tokens, so that they are not removed.
        """

    def only(self, keys: TypedKeys, listed: pa.LargeStringArray | None) -> "Engine":
        """Return the same users with either their single typed keys or some of their joint typed keys.

        Args:
            keys: The columns and the combinations of columns that form keys.
            listed: The public tokens. A joint key is kept if all its single values are listed. If None, the single keys
                are kept instead.
        """

    def with_more(self, items: int) -> "Engine":
        """Return only the users with more than a given number of distinct items.

        Args:
            items: Users with at most this number of distinct items are omitted.
        """

    def row_shares(self, listed: pa.LargeStringArray, columns: int, unit: int) -> Weights:
        """Add up, by column, each user's shares of keys that are on a public list and of all other keys.

        Args:
            listed: The tokens on the list.
            columns: The number of columns of the table.
            unit: The weight of a share of 1.

        Returns:
            The sums of shares. For rank 2 c, each user adds the share of their keys of column c that are on the list,
            rounded down. Repeated keys count each time. For rank 2 c + 1, each user adds the share of their keys that
            are not on the list.
        """

    def nights(self, state: Any, secret: Source, *, first: bool) -> Any:
        """Return the private state of a series in the form of this engine.

        Args:
            state: The state after the nights so far, or an empty `NightlyPools` before the first night.
            secret: The secret of the series.
            first: Whether no night has run yet.

        Raises:
            InputError: The state is stored in another engine.
            MemoryLimitError: The night would exceed the memory limit of the data.
        """

    def gathered(self) -> Any:
        """Return all users in arrays on this machine, as a `LocalCorpus`.

        Raises:
            InputError: The users are not on one machine.
        """


def check_engine(data: object) -> Engine:
    """Return the engine of the data that was passed to `release`.

    Raises:
        InputError: The argument is data that has not been read, such as a path or a table.
    """
    engine = data._engine if isinstance(data, Corpus) else data
    if not isinstance(engine, Engine):
        raise InputError(
            "the data must be an object that voxpop.read or voxpop.load_corpus returned, got a value of type "
            f"{type(data).__name__}. Read it first: voxpop.read(source, user=..., text=...)."
        )
    return engine


def check_ordered(engine: Engine) -> None:
    """Check that the data have an order, because grams require it.

    Raises:
        InputError: The data are items, which have no order.
    """
    if engine.kind == "items":
        raise no_order()


def elsewhere(place: str) -> InputError:
    """Build the error raised if the state of a series is not stored in the engine of its rows."""
    return InputError(f"the state of this series is {place}. Read the rows of every night there.")


def no_order() -> InputError:
    """Build the error raised for phrases or sequences of unordered items."""
    return InputError(
        "phrases and sequences need an order. Read the data with text=, tokens= or sequence=, not items=."
    )
