"""The release of counts and rankings for a public list of grams."""

from collections.abc import Iterator
from dataclasses import replace
from math import pi, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from voxpop.engine.contract import Engine, check_engine, check_ordered
from voxpop.engine.data import Corpus
from voxpop.errors import InputError
from voxpop.kernels.arrays import Int64s
from voxpop.kernels.proved import proved
from voxpop.mechanisms.counts.constants import CERTAIN_SIGMAS, CLASS_EDGES, TYPICAL_SIZES
from voxpop.privacy.gate.counts import ListedGrams
from voxpop.privacy.planned import GateCall, one_pass, run_passes, with_record
from voxpop.reading.arrow import joined, string_array
from voxpop.reading.keys import NO_KEYS
from voxpop.release.counts import Counts, Top
from voxpop.release.known import KnownItems
from voxpop.release.table import with_items

if TYPE_CHECKING:
    from voxpop.mechanisms.counts.plan import CountsPlan, TopPlan
    from voxpop.privacy.gate.counts import CountsGate
    from voxpop.release.release import Release

_Gram = tuple[str, ...]


def listed_grams(release: "Release", lengths: int) -> Iterator[ListedGrams]:
    """Yield the grams of each length from 1 on, including the parts that a walk must visit to reach longer grams.

    Args:
        release: The release with the listed grams.
        lengths: The length of the longest gram.
    """
    wanted: list[dict[_Gram, None]] = [{} for _ in range(lengths)]
    for gram in release.each_gram():
        wanted[len(gram) - 1][gram] = None
    walked = [dict(each) for each in wanted]
    for longer, shorter in zip(walked[:0:-1], walked[-2::-1], strict=True):
        # The walk visits parts that are not on the list, but does not count their users.
        shorter |= {part: None for gram in longer for part in (gram[:-1], gram[1:])}
    rank: dict[_Gram, int] = {}
    for number, grams in enumerate(walked):
        if number:
            # The name is left * 2^32 + partner, because the walk names a gram by its two parts.
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


def sizes_of(release: "Release") -> list[int]:
    """Return the number of grams of each length in a release, from 1 to the longest."""
    return [int(size) for size in np.bincount(release.grams["length"].to_numpy())[1:]]


class DataAndGrams(NamedTuple):
    """The private data, and the public grams to count.

    Attributes:
        data: The data.
        grams: The released grams, and the items of the public list.
    """

    data: Corpus
    grams: "Release"


@proved("counts.md#the-mechanism")
def to_count(plan: "CountsPlan", data: Corpus) -> DataAndGrams:
    """Return the data and the grams to count. The grams depend only on the release and the public list.

    Proof: "S is the set of released grams and of the items of the public list, if there is one."

    Raises:
        InputError: If the list belongs to a saved plan, or its columns or types do not match the release.
    """
    known = plan.mechanism.known_items
    return DataAndGrams(data, plan.grams if known is None else _with_known(plan.grams, known))


class _Counted(NamedTuple):
    """The index of the chosen limit, and the noisy numbers of users of the grams, one array for each counted length."""

    ran: int | None = None
    users: tuple[Int64s, ...] = ()


def release_counts(plan: "CountsPlan", data: DataAndGrams, seed: int | None) -> Counts:
    """Count the users of every released gram with noise, rounded to whole users; see `Release.count`."""
    counted = data.grams
    gate, guarantee = plan.begin(seed)
    engine, lengths = _engine_of(data.data, counted)
    lists = list(listed_grams(counted, lengths))
    words = max(1, len(lists[0].ranks)) if lists else 1
    # No user has more released words than the release contains, so higher classes are empty.
    edges = tuple(edge for edge in CLASS_EDGES if edge <= words)
    gate.open(engine, lists)

    def choose(gate: "CountsGate") -> int:
        # If the mean error included listed words without users, the error of released words would seem smaller.
        released = sum(sizes_of(plan.grams)[:1]) or words
        place = chosen_limit(plan, released, gate.classes(edges).tolist())
        gate.choose(place)
        return place

    def schedule(state: _Counted) -> "GateCall[CountsGate, _Counted] | None":
        if plan.proof.classes_sigma and state.ran is None:
            return GateCall(choose, _Counted, counted=False)
        if len(state.users) == len(lists):
            return None
        return GateCall(lambda gate: gate.counted(), lambda users: _Counted(state.ran, (*state.users, users)))

    ran, parts = run_passes(_Counted(), schedule, gate, "lengths")
    done = with_record(plan, gate, ran=ran)
    rows, users = None if counted is plan.grams else counted, np.concatenate([np.empty(0, np.int64), *parts])
    return Counts(plan.grams, users, done.error, done, guarantee, counted=rows)


def chosen_limit(plan: "CountsPlan", words: int, counts: list[int]) -> int:
    """Return the index of the limit with the smallest mean error, estimated from a noisy histogram of users.

    A user's class is determined by the user's number of released words (docs/privacy/counts.md, "The choice of the
    limit").
    """
    kept = [users if users >= CERTAIN_SIGMAS * plan.proof.classes_sigma else 0 for users in counts]

    def error(place: int) -> float:
        limit = plan.proof.menu[place].limits[0]
        # The error is the mean absolute noise plus the bias from users above the limit, averaged over all words.
        lost: float = sum(
            users * held * (1 - sqrt(min(limit, held) / held)) for users, held in zip(kept, TYPICAL_SIZES, strict=False)
        )
        return plan.proof.menu[place].sigma * sqrt(2 / pi) + lost / words

    return min(range(len(plan.proof.menu)), key=error)


def release_top(plan: "TopPlan", data: Corpus, seed: int | None) -> Top:
    """Return the released grams with the most users, in order; see `Release.top`."""
    gate, guarantee = plan.begin(seed)
    engine, lengths = _engine_of(data, plan.grams)
    grams = listed_grams(plan.grams, lengths)
    first = run_passes(None, one_pass(lambda gate: gate.first(engine, grams, lengths)), gate, "passes")
    return Top(plan.grams, first, with_record(plan, gate), guarantee)


def _engine_of(data: Corpus, release: "Release") -> tuple[Engine, int]:
    """Return the engine that reads private data, and the length of the longest gram."""
    engine, lengths = check_engine(data), len(sizes_of(release))
    if lengths > 1:
        check_ordered(engine)
    return engine, lengths


def _with_known(release: "Release", known: KnownItems) -> "Release":
    """Return a release that also contains the items of a public list, so that both are counted.

    Args:
        release: The release, which keeps its plan and guarantee.
        known: The public list.

    Raises:
        InputError: If the items of the list are unknown, if their columns or types do not match the release, or if
            there is nothing to count.
    """
    keys = release.keys or NO_KEYS
    items = joined(pa.chunked_array(known.parts("text", release.token_source, keys), pa.large_string()))
    if not len(items) and not len(release):
        raise InputError(
            "no item of `known` is a single token of the data, and the release is empty, so there is nothing to "
            "count. Give single words."
        )
    return replace(release, grams=with_items(release.grams, items, release.keys), known=None)
