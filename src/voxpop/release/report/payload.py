"""The grams of a report as text that any browser unpacks: arrays of the tree, deflated, in base64."""

import zlib
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voxpop.arrays import Int32s, Int64s

if TYPE_CHECKING:
    from voxpop.release.trie import GramTrie

PLANES = 4


def payload_of(trie: "GramTrie", counts: Int64s | None = None) -> tuple[dict[str, Any], str]:
    """Pack a tree.

    The stream holds the bytes of all words, then arrays of whole numbers: the number of bytes of each word; for each
    length how many beginnings extend each one of the length before, the step of each token from the one before it
    under the same parent, and whether each is released. An array is four planes, the lowest bytes first, so that
    deflate finds the high ones empty.

    Args:
        trie: of the grams to be shown.
        counts: a number for each beginning, in order of length, where some are released; else None.

    Returns:
        What is needed to unpack it, ready for JSON, and the text.
    """
    encoded = [word.encode() for word in trie.words]
    parts = [b"".join(encoded), _planes(np.array([len(word) for word in encoded], np.int64))]
    for depth in trie.depths:
        parts += [_planes(np.diff(depth.starts)), _planes(_steps(depth.tokens, depth.starts))]
        parts.append(_planes(depth.released.astype(np.int64)))
    if counts is not None:
        parts.append(_planes(counts))
    stream = b"".join(parts)
    shape = {
        "words": len(trie.words),
        "letters": len(parts[0]),
        "depths": [int(depth.tokens.size) for depth in trie.depths],
        "bytes": len(stream),
        "counts": counts is not None,
    }
    return shape, b64encode(zlib.compress(stream, 9)).decode()


def _planes(numbers: NDArray[Any]) -> bytes:
    columns = np.ascontiguousarray(numbers, "<u4").view(np.uint8).reshape(-1, PLANES)
    return columns.T.tobytes()


def _steps(tokens: Int32s, starts: Int64s) -> Int64s:
    """Return tokens less the one before, but whole where a parent's first child stands."""
    whole = tokens.astype(np.int64)
    steps: Int64s = whole - np.concatenate([np.zeros(1, np.int64), whole])[:-1]
    firsts = starts[:-1][np.diff(starts) > 0]
    steps[firsts] = tokens[firsts]
    return steps
