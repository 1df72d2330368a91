"""Comparison of a release with the items of at least k users.

This module reads exact private numbers and is never part of a release.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from voxpop.engine.contract import check_engine
from voxpop.kernels.arrays import Int64s
from voxpop.kernels.weigh import gather_distinct

if TYPE_CHECKING:
    from voxpop.engine.local.corpus import LocalCorpus
    from voxpop.release.release import Release


def private_user_counts(corpus: "LocalCorpus") -> Int64s:
    """Return the number of users of each item, which is private and not noisy.

    Args:
        corpus: The private data.

    Returns:
        int64 by item of the corpus's vocabulary.
    """
    corpus = check_engine(corpus)
    words = len(corpus.vocabulary)
    seen = np.full(words, -1, np.int32)
    everyone = np.arange(corpus.user_key.size)
    items, _ = gather_distinct(corpus.tokens, corpus.user_start, everyone, np.empty(0, np.uint8), seen, 0)
    return np.bincount(items, minlength=words)


def private_coverage(corpus: "LocalCorpus", release: "Release", ks: Sequence[int]) -> pl.DataFrame:
    """Compare a release with k-anonymity, for each k (DPSU, Table 3).

    Args:
        corpus: The private data.
        release: A release of items of that corpus.
        ks: The numbers of users.

    Returns:
        The columns are k; held, the number of items of at least k users; size_ratio, the size of the release over held
        (the paper's coverage); and covered, the share of these items that is released. The table is private and must
        not be published.
    """
    corpus = check_engine(corpus)
    counts = private_user_counts(corpus)
    words = pl.Series(values=corpus.vocabulary, dtype=pl.String)
    released = words.is_in([gram for (gram,) in release.each_gram()]).to_numpy()
    rows = []
    for k in ks:
        held = counts >= k
        size = int(held.sum())
        ratio, covered = (len(release) / size, int((held & released).sum()) / size) if size else (None, None)
        rows.append({"k": k, "held": size, "size_ratio": ratio, "covered": covered})
    return pl.DataFrame(rows)
