"""Comparison of released phrases with the phrases that users wrote.

This module reads exact private numbers and is never part of a release.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from benchmarks.baselines.all_grams import AllGrams
from voxpop.engine.contract import check_engine
from voxpop.kernels.arrays import Int64s
from voxpop.kernels.weigh import gather_distinct

if TYPE_CHECKING:
    from voxpop.engine.local.corpus import LocalCorpus
    from voxpop.release.release import Release


def private_gram_counts(corpus: "LocalCorpus | AllGrams", max_length: int) -> pl.DataFrame:
    """Count the users of every gram. The result is private, not noisy, and large.

    Args:
        corpus: The private data, or all its grams if they are used more than once.
        max_length: The maximum number of tokens per gram.

    Returns:
        A table with the columns gram (list of str), length and users. It is private and must not be published.
    """
    grams = _all_grams(corpus, max_length)
    words = grams.corpus.vocabulary
    frames = []
    for length in range(1, max_length + 1):
        users = _users_by_id(grams, length)
        rows = grams.tokens(length, np.arange(users.size))
        text = pl.Series(values=words.take(rows.ravel()), dtype=pl.String).to_frame("token")
        nested = text.select(pl.col("token").reshape((users.size, length)).arr.to_list().alias("gram"))
        frames.append(nested.with_columns(length=pl.lit(length, pl.Int32), users=pl.Series(users)))
    return pl.concat(frames)


def private_ngram_coverage(
    corpus: "LocalCorpus | AllGrams", release: "Release", ks: Sequence[int], max_length: int
) -> pl.DataFrame:
    """Compare a release with k-anonymity, length by length (DPNE, Figure 4).

    Args:
        corpus: The private data, or all its grams if they are used more than once.
        release: A release of phrases of that corpus.
        ks: The numbers of users.
        max_length: The maximum number of tokens per gram.

    Returns:
        The columns are length; k; held, the number of grams of at least k users; and covered, the share of them that is
        released, or None if no gram has k users. The table is private and must not be published.
    """
    grams = _all_grams(corpus, max_length)
    rows = []
    for length in range(1, max_length + 1):
        users = _users_by_id(grams, length)
        named = _named(grams, release, length)
        for k in ks:
            held = users >= k
            size = int(held.sum())
            covered = int(np.count_nonzero(held[named])) / size if size else None
            rows.append({"length": length, "k": k, "held": size, "covered": covered})
    return pl.DataFrame(rows)


def private_missing_grams(corpus: "LocalCorpus | AllGrams", release: "Release", max_length: int) -> list[float]:
    """Return the share of pairs of user and gram with an unreleased gram, which is private and not noisy.

    Args:
        corpus: The private data, or all its grams if they are used more than once.
        release: A release of phrases of that corpus.
        max_length: The maximum number of tokens per gram.

    Returns:
        The share of each length from 1 on, then of all lengths together.
    """
    grams = _all_grams(corpus, max_length)
    users = [_users_by_id(grams, length) for length in range(1, max_length + 1)]
    whole = [int(each.sum()) for each in users]
    missing = [
        all_of_it - int(each[_named(grams, release, length)].sum())
        for length, (each, all_of_it) in enumerate(zip(users, whole, strict=True), 1)
    ]
    pairs = zip((*missing, sum(missing)), (*whole, sum(whole)), strict=True)
    return [part / max(all_of_it, 1) for part, all_of_it in pairs]


def private_spurious_share(corpus: "LocalCorpus | AllGrams", release: "Release", max_length: int) -> float:
    """Return the share of released grams without users, which is private, not noisy, and at most about eta."""
    grams = _all_grams(corpus, max_length)
    held = sum(_named(grams, release, length).size for length in range(1, max_length + 1))
    return 1.0 - held / len(release) if len(release) else 0.0


def _all_grams(corpus: "LocalCorpus | AllGrams", max_length: int) -> AllGrams:
    return corpus if isinstance(corpus, AllGrams) else AllGrams.of(check_engine(corpus), max_length)


def _users_by_id(grams: AllGrams, length: int) -> Int64s:
    corpus = grams.corpus
    seen = np.full(grams.size(length), -1, np.int32)
    everyone = np.arange(corpus.user_key.size)
    ids, _ = gather_distinct(grams.ids[length - 1], corpus.user_start, everyone, np.empty(0, np.uint8), seen, 0)
    counts: Int64s = np.bincount(ids, minlength=seen.size)
    return counts


def _named(grams: AllGrams, release: "Release", length: int) -> Int64s:
    """Return the ids of the released grams of a length with at least one user."""
    corpus = grams.corpus
    place = {word: number for number, word in enumerate(corpus.vocabulary.to_pylist())}
    wanted = [tuple(place[token] for token in gram) for gram in release.each_gram() if len(gram) == length]
    if length == 1:
        return np.array([token for (token,) in wanted], np.int64)
    ids = np.array(wanted, np.int64).reshape(-1, length)
    held = np.ones(len(ids), bool)
    for shorter in range(2, length + 1):  # ids of all parts of one length, from the parts that are one shorter
        names = grams.names[shorter - 2]
        order = grams.order(shorter)
        pairs = (ids[:, :-1] << 32) | ids[:, 1:]
        found = np.minimum(np.searchsorted(names, pairs, sorter=order), max(names.size - 1, 0))
        parts = order[found] if names.size else np.zeros_like(pairs)
        held &= (names[parts] == pairs).all(axis=1) if names.size else False
        ids = parts
    chosen: Int64s = ids[held, 0]
    return chosen
