"""The engine contract: the operations on private data that a mechanism may use.

An engine holds the private data and computes weights; a mechanism does not depend on the implementation. This machine
(`Corpus`, with or without a limit on memory) is one, a cluster (`voxpop.engine.spark.corpus.SparkCorpus`) another, and
the tests have a third in plain dicts (`tests/naive/engine.py`). A new engine implements these protocols;
`tests/contracts/test_engine_contract.py` checks the implementation: with the same secret, every engine gives the same
release.

| protocol | answers |
|---|---|
| `Engine` | the weights of items (classic set union), and the walks over the private data |
| `PoolWalk` | items in adaptive rounds (set union by default) |
| `LengthWalk` | grams, length after length (n-grams, counts) |
| `TreeWalk` | one sequence a user, symbol after symbol (sequences) |
| `Weights` | a private histogram, read only with added noise |

Only the gate of a release (`voxpop.privacy.gate`) makes the noise that engines apply, by `opened`. Payments of
users, noise and draws are the classes of `voxpop.privacy` themselves.

Names. The name of a draw must be the same on every engine: an item or a token by its bytes; a gram of length k > 1 by
`left * 2^32 + partner`, the ranks of its two parts among the kept grams of length k - 1 (of the token, under
single-side pruning), where ranks count kept names in rising order from 0.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import pyarrow as pa

from voxpop.engine.data import CandidateArrays, Corpus, Subset
from voxpop.errors import InputError
from voxpop.kernels.arrays import Bytes, Int32s, Int64s
from voxpop.privacy.cumulative import ScoreStep
from voxpop.privacy.individual import Charge
from voxpop.privacy.opening import Opening
from voxpop.privacy.path_budget import ContextNoise
from voxpop.privacy.secret import Source
from voxpop.privacy.weightings.capped import CappedDescent
from voxpop.reading.keys import Keys
from voxpop.reading.typed_keys import TypedKeys

ALL_LENGTHS = "all lengths"
"""The name of the one order that a walk through lengths has."""
WORDS_PASS = "words"
"""The purpose under which words get the 64 bits that samples name them by."""


def sample_of(pass_name: str) -> str:
    """Return the purpose of the samples of one weighing."""
    return f"sample/{pass_name}"


def order_of(pass_name: str) -> str:
    """Return the purpose of one order of users."""
    return f"order/{pass_name}"


def part_of(pass_name: str) -> str:
    """Return the purpose of the draws by which users take part in one round."""
    return f"part/{pass_name}"


class Shares(Protocol):
    """A weighting with all its numbers filled in: how one user's weight is shared over the user's items."""

    @property
    def sequential(self) -> bool:
        """Whether a user's shares depend on the weights that earlier users left."""

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, bounds: Int64s | None = None) -> None:
        """Add bounded sets to the histogram, in order and in place.

        Args:
            histogram: int64 (ids), weight by id, in units of the weighting's grid.
            items: int32, distinct ids of one user after the other: after `LengthWalk.keep` ranks of kept grams, else
                numbers that the engine assigns.
            starts: int64 (users + 1): user j holds `items[starts[j]:starts[j + 1]]`.
            bounds: int64 (users), the contribution bound of each user to the histogram, as `Charge.bounds` gave it;
                None: by 1.
        """


class Weights(Protocol):
    """The weight of every item of the bounded sets: private, so it is only read with noise.

    Weights are int64 in units of the weighting's grid; their sum over users does not depend on any order, unless the
    weighting is sequential. Where Spark adds up blocks of users, a sequential weighting runs in each block separately.
    """

    def chosen(self, decision: Opening) -> Int64s:
        """Return the items that pass, rising: numbers to be given to `texts` at length 1, else names of grams.

        Only items with weight are tested: an item without weight never exists.
        """

    def noisy_levels(self, levels: Opening, spurious_names: Int64s, theirs: Int64s) -> tuple[Int64s, Int64s]:
        """Return the names of a level above 0, rising, and their levels.

        Args:
            levels: number of cutpoints that each item with weight reaches.
            spurious_names: names that have a level where they have no weight, rising: simulated, so public.
            theirs: int64 (spurious), the level of each spurious candidate.
        """

    def texts(self, ids: Int64s) -> pa.LargeStringArray:
        """Return the words of numbers that `chosen` or `noisy_levels` gave, at length 1."""

    def measured(self, noise: Opening, size: int) -> Int64s:
        """Return the noisy weight of every rank below `size`, held or not."""


class PoolWalk(Protocol):
    """Items in adaptive rounds: a `first_round`, then each user's pool is `draw`n once, then rounds `advance`.

    Scores and who is undecided stay inside the engine. Users weigh in the order of "order/adaptive rounds/length 1"
    in all rounds.
    """

    def sizes(self, edges: Sequence[int]) -> Weights:
        """Count the users by their number of distinct items, before the first round.

        Args:
            edges: rising; the class of a user is the number of edges that are at most its number of items. Users
                without items are in no class.

        Returns:
            The number of users by class, from 0 to `len(edges)`.
        """

    def first_round(self, shares: Shares, limit: int, decision: Opening, pass_name: str) -> None:
        """Weigh at most `limit` distinct items of each user; release the items that pass, and exclude them."""

    def recognise(self, listed: Iterable[pa.LargeStringArray]) -> None:
        """Take a public list of items, in parts, after the first round and before pools are drawn.

        Listed items are in the pools in addition to `size` others, have no caps, and are decided by `step.known`:
        engines keep the largest level of each.
        """

    def draw(self, size: int, pass_name: str) -> None:
        """Give every user a pool: at most `size` of its items that are left, drawn uniformly, once."""

    def advance(self, shares: CappedDescent, step: ScoreStep, pass_name: str) -> None:
        """Let every user weigh undecided items of its pool, at most the limit of them, drawn afresh; then decide.

        Where users take part by chance, the draw is "part/PASS" by the user's key and 0. The step is applied to every
        undecided item of every pool, drawn or not: the proof needs its noise.
        """

    def released(self) -> pa.LargeStringArray:
        """Return the released items, in order of bytes; of a list only those of the first round."""

    def levels(self) -> tuple[pa.LargeStringArray, Bytes]:
        """Return the listed items of pools that have reached a level above 0, in no order, and their levels."""


class LengthWalk(Protocol):
    """Grams by length: `weigh` the users' grams, `keep` the released ones, `extend` to the next candidates.

    After `keep` or `keep_words` the kept grams can be weighed again, by their ranks. Where a weighing has a charge,
    users pay for it, once and for all; at the beginning of a walk no user has been charged.
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
        """Let every user share its weight over at most `limit` of its distinct grams of this length.

        As `Engine.weigh`, but in the order of "order/all lengths" where the weighting is sequential. From the first
        `keep` on, a weighing may have a charge; candidates may be weighed more than once, and only some of them.
        """

    def keep(self, names: Int64s, deferred: Int64s | None = None) -> None:
        """Keep only these grams: names, rising, of released grams, including grams that no user holds.

        At length 1 the result of the last weighing's `chosen` or `noisy_levels`.

        Args:
            names: of the released grams.
            deferred: names, rising, of other candidates of this length, which `weigh_deferred` is about.
        """

    def weigh_deferred(self, shares: Shares, limit: int, secret: Source, pass_name: str, charge: Charge) -> Weights:
        """Let every user share its weight over at most `limit` of all candidates that were deferred.

        Their names are their numbers, from 0, in the order in which they were deferred. The grams of a user come in
        the order of lengths, and of one length in the order of their first occurrence in its documents.
        """

    def keep_words(self, words: pa.LargeStringArray, order: Source | None = None) -> None:
        """Keep only these tokens: distinct, in order of bytes, public, including tokens that no user holds.

        Args:
            words: they.
            order: where later weightings are sequential, the source of their order of users.
        """

    def extend(self, candidates: CandidateArrays) -> None:
        """Go on to the next length: its candidates among the pairs that at least one user holds.

        Raises:
            InputError: where the data have no order.
        """


CountKind = Literal["lengths", "variety", "following"]


class TreeWalk(Protocol):
    """One sequence per user, down a tree of contexts.

    At the beginning every step is under the empty context. A step is a symbol of a sequence or its end; the end of a
    sequence of the maximum length is not a step. The counts of symbols after the nodes are returned by
    `released` with noise, then each step is moved to a longer context by `lengthen`.
    """

    def count_first(self, steps: int) -> None:
        """Leave all steps but the first ones of each sequence out of "following", before the first of these counts.

        Args:
            steps: the number of first steps of each sequence that count; its end is a step as well.
        """

    def released(self, counted: CountKind, noise: ContextNoise, *given: Int64s) -> Int64s:
        """Count, and return the noisy counts (nodes, width).

        Args:
            counted: "lengths" for the sequences in classes of length, which `given` begins; "variety" for the numbers
                of symbols, among the first `given[0]` of their sequence, that are distinct from all before and, if
                `given[1]` is 2, that equal the one before; "following" for the steps under each node of the last level
                by their symbol, of which the last is the end. The first two before contexts are lengthened.
            noise: of these counts.
            given: the classes that are counted, for "lengths" and "variety".
        """

    def lengthen(self, depth: int, keys: Int64s, longer: Int32s, others: Int32s) -> None:
        """Move each step under the node of a context that reaches one symbol further back.

        Args:
            depth: length of the contexts until now, so that the symbol `depth + 1` before the step selects the new
                node.
            keys: int64, distinct `node * width + symbol`; the symbol `width - 1` precedes every sequence.
            longer: int32 by key, number of the new node.
            others: int32 by old node, the new node of steps that have none of its keys; -1 if they are not counted.
        """


@runtime_checkable
class Engine(Protocol):
    """The holder of the private data, which is never part of a release."""

    @property
    def kind(self) -> str:
        """One of "text", "tokens", "items" and "sequence"; only items have no order."""

    @property
    def token_source(self) -> str:
        """How its tokens were made, which is public; "" where it is not known."""

    @property
    def keys(self) -> Keys:
        """The columns that items came from, which are public as the schema is; none for words."""

    @property
    def families(self) -> tuple[str, ...]:
        """The families of the ids of users, by column, which are public as the schema is; "" where none is declared."""

    def weigh(self, shares: Shares, limit: int, secret: Source, pass_name: str) -> Weights:
        """Let every user share its weight over at most `limit` distinct items.

        Args:
            shares: how a user's weight is shared.
            limit: most items of one user; a user of more draws `limit` of them uniformly.
            secret: of the sample ("sample/PASS" by the user's key and the item's 64 bits of "words") and, where the
                weighting is sequential, of the order of users ("order/PASS" by the user's key).
            pass_name: which pass of the release this is; every pass draws afresh.
        """

    def pools(self, secret: Source) -> PoolWalk:
        """Return the items, to be released in adaptive rounds.

        Args:
            secret: of the order, the pools and the draws of every round ("sample/PASS" by the user's key and the
                item's 64 bits of "words").
        """

    def length_walk(self) -> LengthWalk:
        """Return the walk from words to longer and longer grams."""

    def tree_walk(
        self, alphabet: tuple[str, ...], max_length: int, secret: Source, other: str | None = None
    ) -> TreeWalk:
        """Return every user's one sequence, to be counted.

        Args:
            alphabet: distinct symbols, public; other tokens are left out before anything is counted or cut.
            max_length: most symbols of one user.
            secret: of the draw ("sequences/sample" by the user's key).
            other: a symbol of the alphabet that all other tokens become instead.
        """

    def only(self, keys: TypedKeys, listed: pa.LargeStringArray | None) -> "Engine":
        """Return the same users with some of their typed keys: the single ones, or joint ones.

        Args:
            keys: the columns and combinations.
            listed: public tokens; the joint keys whose single values are all listed are kept. None keeps single keys.
        """

    def row_shares(self, listed: pa.LargeStringArray, columns: int, unit: int) -> Weights:
        """Add up the shares of each user's typed keys that are on a public list, row by row.

        Args:
            listed: the tokens on the list.
            columns: number of columns of the table.
            unit: of shares.

        Returns:
            For column c, rank 2 c: each user adds the share of its keys of this column, repeated ones counted each
            time, that are on the list, rounded down; rank 2 c + 1: the share of those that are not.
        """

    def nights(self, state: Any, secret: Source, *, first: bool) -> Any:
        """Return the private state of a series as this engine holds it.

        Args:
            state: of the nights so far; before the first night an empty `NightlyPools`.
            secret: of the series.
            first: whether no night was run yet.

        Raises:
            InputError: the state is on another engine.
            MemoryLimitError: the night would go beyond the limit of the data.
        """

    def gathered(self) -> Any:
        """Return all users in arrays on this machine: a `LocalCorpus`.

        Raises:
            InputError: where they are not on one machine.
        """


def check_engine(data: object) -> Engine:
    """Return the engine of the data that a caller of `release` gives.

    Raises:
        InputError: if the data was not read, such as a path or a table.
    """
    engine = data._engine if isinstance(data, Corpus) else data
    if not isinstance(engine, Engine):
        raise InputError(
            "the data must be what voxpop.read or voxpop.load_corpus returned, got a value of type "
            f"{type(data).__name__}. Read it first: voxpop.read(source, user=..., text=...)."
        )
    return engine


def check_ordered(engine: Engine) -> None:
    """Refuse items where grams are wanted.

    Raises:
        InputError: for items, which have no order.
    """
    if engine.kind == "items":
        raise no_order()


def elsewhere(place: str) -> InputError:
    """Build the error raised for rows of a series whose state is on another engine."""
    return InputError(f"the state of this series is {place}. Read the rows of every night there.")


def no_order() -> InputError:
    """Build the error raised for phrases or sequences of unordered items."""
    return InputError(
        "phrases and sequences need an order: read the data with text=, tokens= or sequence=, not items=."
    )
