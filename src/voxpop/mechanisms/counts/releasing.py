"""The privacy boundary of counts and rankings: noise is added to every count, and only the result is returned.

For a public list of grams: the walk to the grams, the share of each user, and the sums.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import pi, sqrt
from typing import TYPE_CHECKING, final

import numpy as np
import pyarrow as pa

from voxpop.engine.contract import Engine, LengthWalk, Noise, RestrictableDraws, Weights, check_engine, check_ordered
from voxpop.engine.data import Corpus
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Bools, Int32s, Int64s
from voxpop.mechanisms.counts.constants import EDGES, SURE, TYPICAL, UNIT
from voxpop.privacy.decisions import CellNoise, GumbelNoise
from voxpop.privacy.planned import with_record
from voxpop.privacy.secret import Secret
from voxpop.reading.arrow import string_array
from voxpop.release.tally import Ranking, Tally

if TYPE_CHECKING:
    from voxpop.mechanisms.counts.plan import CountsPlan, TopPlan
    from voxpop.release.release import Release

Gram = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ListedGrams:
    """The grams of one length that a walk keeps: those on the list, and parts of longer ones.

    Attributes:
        length: of each.
        names: int64, rising: ranks at length 1, `left * 2^32 + partner` above.
        words: in order of bytes, at length 1; empty above.
        before: number of grams that were kept at the length before.
        ranks: int64 by place on the list, the rank of each among the names.
        counted: bool by rank, which are on the list; None where all are.
    """

    length: int
    names: Int64s
    words: pa.LargeStringArray
    before: int
    ranks: Int64s
    counted: Bools | None

    @property
    def size(self) -> int:
        """The number of kept grams."""
        return int(self.names.size)


def listed_grams(release: "Release", lengths: int) -> Iterator[ListedGrams]:
    """Yield the grams of each length from 1 on, with the parts through which a walk must go.

    Args:
        release: whose grams are on the list.
        lengths: of the longest gram.
    """
    wanted: list[dict[Gram, None]] = [{} for _ in range(lengths)]
    for gram in release.each_gram():
        wanted[len(gram) - 1][gram] = None
    walked = [dict(each) for each in wanted]
    for longer, shorter in zip(walked[:0:-1], walked[-2::-1], strict=True):
        # Parts that are not on the list are walked through, and do not count.
        shorter |= {part: None for gram in longer for part in (gram[:-1], gram[1:])}
    rank: dict[Gram, int] = {}
    for number, grams in enumerate(walked):
        if number:
            # left * 2^32 + partner, as the walk names a gram by its two parts.
            named = {gram: (rank[gram[:-1]] << 32) | rank[gram[1:]] for gram in grams}
            kept, words = sorted(named, key=named.__getitem__), string_array([])
            names = np.array([named[gram] for gram in kept], np.int64)
        else:
            kept = sorted(grams, key=lambda gram: gram[0].encode())
            words, names = string_array([gram[0] for gram in kept]), np.arange(len(kept))
        before, rank = len(rank), {gram: place for place, gram in enumerate(kept)}
        listed = np.array([gram in wanted[number] for gram in kept], np.bool_)
        ranks = np.array([rank[gram] for gram in wanted[number]], np.int64)
        yield ListedGrams(number + 1, names, words, before, ranks, None if listed.all() else listed)


Limits = Callable[[LengthWalk, ListedGrams], Sequence[int]]
"""Returns, for each length, the most grams for which a user counts in full."""


def sizes_of(release: "Release") -> list[int]:
    """Return the number of grams of each length in a release, from 1 to the longest."""
    return [int(size) for size in np.bincount(release.grams["length"].to_numpy())[1:]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class HolderShares:
    """One for each gram up to the limit, and evenly less beyond, so that the squares add up to at most the limit.

    Attributes:
        limit: most grams for which a user counts in full.
        counted: bool by id, which grams count; None where all do. Others neither get a share nor use any up.
    """

    limit: int
    counted: Bools | None = None
    sequential = False

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, bounds: Int64s | None = None) -> None:
        """Add the shares of bounded sets in place."""
        from voxpop.kernels.weigh import add_even

        if bounds is not None:
            raise InternalError("counts have no proof for users with unequal bounds")
        if self.counted is not None:
            chosen = self.counted[items]
            # Parts of longer grams that are not on the list neither count nor use up anything.
            before = np.concatenate([[0], np.cumsum(chosen)])
            items, starts = items[chosen], before[starts].astype(np.int64)
        most = int(np.diff(starts).max(initial=0))
        add_even(histogram, items, starts, share_table(self.limit, most))


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClassShares:
    """One for the class of a user by its number of grams, and nothing for grams: the histogram has classes, not ids.

    The class of a user is the number of edges that are at most its number of grams, so it is below that number and is
    always a place of the histogram.

    Attributes:
        edges: rising; the first above 1, each at least twice the one before.
        counted: bool by id, which grams count; None where all do.
    """

    edges: tuple[int, ...]
    counted: Bools | None = None
    sequential = False

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, bounds: Int64s | None = None) -> None:
        """Add the users of bounded sets in place."""
        if bounds is not None:
            raise InternalError("users are counted once, and have no bounds")
        counts = np.ones(items.size, np.bool_) if self.counted is None else self.counted[items]
        held = np.diff(np.concatenate([[0], np.cumsum(counts)])[starts])
        classes = np.searchsorted(self.edges, held[held > 0], side="right")
        if classes.size:
            np.add.at(histogram, classes, 1)


def share_table(limit: int, most: int) -> Int64s:
    """Return the share, in units, by the number of grams held, from 0 to `most`.

    Args:
        limit: most grams for which a user counts in full.
        most: the last number wanted.

    Returns:
        int64: n times the square of entry n is at most limit times `UNIT` squared, in whole numbers.

    Example:
        >>> [round(share / UNIT, 3) for share in share_table(2, 4).tolist()]
        [1.0, 1.0, 1.0, 0.816, 0.707]
    """
    # (most + 1,), units by number of grams held: 1 up to the limit, sqrt(limit / n) beyond.
    shares = np.full(most + 1, UNIT, np.int64)
    beyond = np.arange(limit + 1, most + 1)
    # A double is right to less than a unit, so one less is never too much.
    shares[limit + 1 :] = np.floor(UNIT * np.sqrt(limit / beyond)).astype(np.int64) - 1
    return shares


def weights_of_holders(
    corpus: Engine, release: "Release", limits: Limits, secret: RestrictableDraws
) -> Iterator[tuple[ListedGrams, Weights]]:
    """Yield the grams of each length from 1 on, and their weights by rank.

    Args:
        corpus: the private side.
        release: whose grams are counted.
        limits: called once, when the walk has kept the words; returns the limit of each length.
        secret: required by the corpus; nothing is sampled, since no user holds more grams than exist.
    """
    levels, chosen = corpus.length_walk(), tuple[int, ...]()
    for listed in listed_grams(release, len(sizes_of(release))):
        if listed.length == 1:
            levels.keep_words(listed.words)
        else:
            levels.extend(_Everything(*np.zeros((2, listed.before), np.int64)))
            levels.keep(listed.names)
        chosen = chosen or tuple(limits(levels, listed))
        shares = HolderShares(chosen[listed.length - 1], listed.counted)
        # The limit is the number of grams, so nothing is sampled and no draw is made.
        yield listed, levels.weigh(shares, max(1, listed.size), secret, f"count {listed.length}")


@dataclass(frozen=True, slots=True, eq=False)
class _Everything:
    """Every pair of kept grams is a candidate: grams that are not on the list are dropped afterwards.

    Attributes:
        need: int64 by kept gram, 0.
        estimates: int64 by kept gram, 0.
        single: always False: partners are grams.
    """

    need: Int64s
    estimates: Int64s
    single: bool = False


def release_counts(plan: "CountsPlan", data: Corpus, seed: int | None) -> Tally:
    """Weigh every released gram, add noise to every one, and round to whole users; see `Counts.release`."""
    secret, guarantee = plan.begin(seed)
    ran = plan

    def limits(levels: LengthWalk, listed: ListedGrams) -> tuple[int, ...]:
        nonlocal ran
        if plan.histogram_sigma:
            ran = with_record(plan, ran=chosen_limit(plan, levels, listed, secret))
        return ran.limits

    def noise(length: int) -> Noise:
        return CellNoise(ran.sigma, UNIT, UNIT, secret, f"noise/count {length}")

    users = measured_holders(data, plan.grams, limits, secret, noise)
    return Tally(plan.grams, users, ran.error, ran, guarantee)


def chosen_limit(plan: "CountsPlan", levels: LengthWalk, listed: ListedGrams, secret: Secret) -> int:
    """Return the place of the limit with the least mean error, by a noisy histogram of users.

    A user is in the class of its number of released words (docs/privacy/counts.md, "The choice of the limit").
    """
    words = max(1, len(listed.ranks))
    # Nobody holds more words than there are.
    edges = tuple(edge for edge in EDGES if edge <= words)
    noise = CellNoise(plan.histogram_sigma, 1, 1, secret, "noise/count classes")
    weights = levels.weigh(ClassShares(edges, listed.counted), max(1, listed.size), secret, "count classes")
    counts = weights.measured(noise, 1 + len(edges)).tolist()
    kept = [users if users >= SURE * plan.histogram_sigma else 0 for users in counts]

    def error(place: int) -> float:
        limit = plan.menu[place][0]
        # What users who hold more than the limit count too little, over all words; and the mean size of the noise.
        lost: float = sum(
            users * held * (1 - sqrt(min(limit, held) / held)) for users, held in zip(kept, TYPICAL, strict=False)
        )
        return plan.sigmas[place] * sqrt(2 / pi) + lost / words

    return min(range(len(plan.menu)), key=error)


def release_top(plan: "TopPlan", data: Corpus, seed: int | None) -> Ranking:
    """Count all who hold each released gram, add noise to every count, and return the first; see `Top.release`."""
    secret, guarantee = plan.begin(seed)
    noise = partial(GumbelNoise, plan.rate, UNIT, secret)
    sizes = sizes_of(plan.grams)
    noisy = measured_holders(data, plan.grams, lambda *_: sizes, secret, lambda length: noise(f"noise/top {length}"))
    # The k largest of counts with Gumbel noise: k exponential mechanisms one after the other (docs/privacy/top.md,
    # "Proof").
    first = np.argsort(-noisy, kind="stable")[: plan.picks]
    return Ranking(plan.grams, first, plan, guarantee)


def measured_holders(
    data: Corpus, release: "Release", limits: Limits, secret: Secret, noise: Callable[[int], Noise]
) -> Int64s:
    """Return the noisy number of users of each gram, in canonical order.

    Args:
        data: the private data.
        release: whose grams are counted.
        limits: as in `weights_of_holders`.
        secret: source of draws.
        noise: by length; it is added to every gram of the list, including grams without users.
    """
    corpus = check_engine(data)
    if len(sizes_of(release)) > 1:
        check_ordered(corpus)
    parts = [np.empty(0, np.int64)]
    for listed, weights in weights_of_holders(corpus, release, limits, secret):
        # By rank among the grams that the walk kept, then by place on the list: parts that are not on it are dropped.
        parts.append(weights.measured(noise(listed.length), listed.size)[listed.ranks])
    return np.concatenate(parts)
