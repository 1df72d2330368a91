"""From a corpus to how many users hold each gram of a public list: the private side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxpop.counts.shares import HolderShares

if TYPE_CHECKING:
    from voxpop.corpus import Corpus
    from voxpop.corpus.draws import Draws
    from voxpop.release.release import Release

Gram = tuple[str, ...]
Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Everything:
    """Every pair of kept grams: what is not on the list is forgotten right afterwards."""

    need: Int64s
    estimates: Int64s
    single: bool = False


def weights_of_holders(
    corpus: "Corpus", release: "Release", limits: Sequence[int], secret: "Draws"
) -> Iterator[Int64s]:
    """Yield, for each length, the weight of every released gram of that length in canonical order, in units.

    Args:
        corpus: the private side.
        release: whose grams are counted.
        limits: for each length.
        secret: asked by the corpus; nothing is sampled, since nobody holds more grams than there are.
    """
    wanted = by_length(release, len(limits))
    if len(limits) == 1:
        yield _single(corpus, wanted[0], limits[0], secret)
        return
    walked = with_parts(wanted)
    ids = _ids_of(corpus, walked[0])
    levels = corpus.levels()
    rank: dict[Gram, int] = {}
    for number, limit in enumerate(limits):
        grams, names = _names_of(walked[number], ids, rank)
        levels.keep(names)
        counted = np.array([gram in wanted[number] for gram in grams], np.bool_)
        shares = HolderShares(limit, None if counted.all() else counted)
        histogram = levels.weigh(shares, max(1, len(grams)), secret, f"count {number + 1}")
        held = dict(zip(histogram.ids.tolist(), histogram.weights.tolist(), strict=True))
        places = {gram: held.get(place, 0) for place, gram in enumerate(grams)}
        yield np.array([places.get(gram, 0) for gram in wanted[number]], np.int64)
        if number + 1 < len(limits):
            rank = {gram: place for place, gram in enumerate(grams)}
            nothing = np.zeros(len(grams), np.int64)
            levels.extend(_Everything(nothing, nothing))


def by_length(release: "Release", lengths: int) -> list[dict[Gram, None]]:
    """Return the grams of each length from 1 on, in canonical order."""
    found: list[dict[Gram, None]] = [{} for _ in range(lengths)]
    for gram in release.each_gram():
        found[len(gram) - 1][gram] = None
    return found


def with_parts(wanted: Sequence[dict[Gram, None]]) -> list[dict[Gram, None]]:
    """Add the parts of grams that are not on the list themselves: they must be walked through, and do not count."""
    walked = [dict(each) for each in wanted]
    for number in range(len(walked) - 1, 0, -1):
        for gram in walked[number]:
            walked[number - 1].setdefault(gram[:-1])
            walked[number - 1].setdefault(gram[1:])
    return walked


def _single(corpus: "Corpus", grams: dict[Gram, None], limit: int, secret: "Draws") -> Int64s:
    """Weigh single items, which need no order."""
    ids = _ids_of(corpus, grams)
    candidates = np.zeros(len(corpus.vocabulary), np.uint8)
    candidates[list(ids.values())] = 1
    histogram = corpus.weigh(HolderShares(limit), max(1, len(grams)), candidates, secret, "count 1")
    held = dict(zip(histogram.ids.tolist(), histogram.weights.tolist(), strict=True))
    return np.array([held.get(ids.get(gram, -1), 0) for gram in grams], np.int64)


def _ids_of(corpus: "Corpus", grams: dict[Gram, None]) -> dict[Gram, int]:
    """Return the ids of those tokens that somebody holds."""
    import pyarrow.compute as pc

    from voxpop.arrow import string_array

    found = pc.index_in(string_array([gram[0] for gram in grams]), value_set=corpus.vocabulary).to_pylist()
    return {gram: place for gram, place in zip(grams, found, strict=True) if place is not None}


def _names_of(grams: dict[Gram, None], ids: dict[Gram, int], rank: dict[Gram, int]) -> tuple[list[Gram], Int64s]:
    """Return the grams that can be walked to, in order of their names, and the names."""
    if rank:
        named = {g: (rank[g[:-1]] << 32) | rank[g[1:]] for g in grams if g[:-1] in rank and g[1:] in rank}
    else:
        named = {gram: ids[gram] for gram in grams if gram in ids}
    ordered = sorted(named, key=named.__getitem__)
    return ordered, np.array([named[gram] for gram in ordered], np.int64)
