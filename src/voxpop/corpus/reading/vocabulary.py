"""One sorted vocabulary from several lists of words."""

import numpy as np
import pyarrow as pa

from voxpop.arrays import Bools, Int32s
from voxpop.arrow import int64_array
from voxpop.corpus.widths import check_width

FEW = 10_000
"""Up to this many words plain Python is done before polars is imported."""

Merged = tuple[pa.LargeStringArray, list[Int32s]]


def merge_words(words: list[pa.Array], used: list[Bools]) -> Merged:
    """Return the distinct words in use, sorted by their bytes, and the place of each word of each list.

    Args:
        words: lists of strings, distinct within each.
        used: which of them count.

    Returns:
        large_string, sorted; and int32 arrays, -1 for words that nobody uses.

    Raises:
        InputError: where there are more words than 32 bits can number.
    """
    if sum(len(each) for each in words) <= FEW:
        return merge_few(words, used)
    return merge_many(words, used)


def merge_few(words: list[pa.Array], used: list[Bools]) -> Merged:
    """Merge with dicts: Python orders strings by code points, which is the order of their UTF-8 bytes."""
    if not words:
        return pa.nulls(0, pa.large_string()), []
    any_use = np.concatenate(used)
    lists = [each.to_pylist() for each in words]
    every = [word for each in lists for word in each]
    first = {word: number for number, word in enumerate(every) if any_use[number]}
    ordered = sorted(first)
    place = {word: number for number, word in enumerate(ordered)}
    names = [np.array([place.get(word, -1) for word in each], np.int32) for each in lists]
    together = pa.concat_arrays([each.cast(pa.large_string()) for each in words])
    return together.take(int64_array([first[word] for word in ordered])), names


def merge_many(words: list[pa.Array], used: list[Bools]) -> Merged:
    """Merge with polars, which sorts and joins in parallel: one join for all lists, of which there may be hundreds."""
    import polars as pl

    empty = pl.Series(values=[], dtype=pl.String)
    every = pl.concat([empty, *(pl.Series(values=each, dtype=pl.String) for each in words)])
    any_use = np.concatenate([np.empty(0, np.bool_), *used])
    vocabulary = every.filter(pl.Series(values=any_use)).unique().sort()
    check_width(len(vocabulary), "distinct words or items")
    numbered = pl.DataFrame({"word": vocabulary, "name": np.arange(len(vocabulary), dtype=np.int32)})
    named = every.to_frame("word").join(numbered, on="word", how="left", maintain_order="left")["name"]
    names = named.fill_null(-1).to_numpy().astype(np.int32, copy=False)
    ends = np.cumsum([len(each) for each in words])
    sorted_words = vocabulary.to_arrow().cast(pa.large_string())
    return sorted_words, [names[end - len(each) : end] for each, end in zip(words, ends, strict=True)]
