"""Cut texts into sentences, so that phrases do not run from one into the next."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.arrays import Int64s
from voxpop.arrow import numbers_of

CUT = "\x1e"
"""The control character for the end of a record; texts that hold it are cut there too."""
AFTER_STOP = r"([.!?…。！？][\"'”’»)\]]*)\s+"
"""A stop, closing quotes or brackets, then space; no abbreviations are known, so "e.g. this" is cut as well."""
LINES = r"\s*\n\s*"


def split_sentences(texts: pa.Array) -> tuple[pa.Array, Int64s]:
    """Cut each text after full stops, question and exclamation marks, ellipses and line ends.

    Args:
        texts: strings; null counts as an empty text.

    Returns:
        large_string, the sentences of all texts; and int64 (texts + 1), where each text's sentences begin.

    Example:
        >>> sentences, starts = split_sentences(pa.array(["Tea? Yes, please.", "No."]))
        >>> sentences.to_pylist(), starts.tolist()
        (['Tea?', 'Yes, please.', 'No.'], [0, 2, 3])
    """
    marked = pc.replace_substring_regex(texts.cast(pa.large_string()).fill_null(""), LINES, CUT)
    marked = pc.replace_substring_regex(marked, AFTER_STOP, rf"\1{CUT}")
    lists = pc.split_pattern(marked, CUT).cast(pa.large_list(pa.large_string()))
    starts = np.concatenate([[0], np.cumsum(numbers_of(lists.value_lengths()))])
    return lists.flatten(), starts.astype(np.int64)


def each_sentence(rows: Iterable[tuple[str, pa.Array]], starts: list[Int64s]) -> Iterator[tuple[str, pa.Array]]:
    """Pass on batches of texts as batches of sentences, setting aside where each text's sentences begin."""
    for where, texts in rows:
        sentences, own = split_sentences(texts)
        starts.append(own)
        yield where, sentences
