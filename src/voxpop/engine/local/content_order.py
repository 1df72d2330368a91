"""An order computed from the content of rows, for rows whose given order depends on other users.

Spark takes files in the order of their sizes, so one user's rows could exchange the files of all, and with them the
documents that others are counted by. The order here depends only on a user's own documents (docs/privacy/spark.md).
"""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.local.corpus import LocalCorpus
from voxpop.engine.local.weigh import user_spans
from voxpop.kernels.group import gather_slices
from voxpop.kernels.threads import in_order
from voxpop.reading.arrow import array_of, numbers_of
from voxpop.reading.limited.memory import forget_pages

POSITIONS_AT_ONCE = 1 << 20
BYTES_OF_POSITION = 72
"""Of one user's: three copies of its tokens, and up to seven numbers of a document."""


def in_content_order(corpus: LocalCorpus, *, documents: bool = True) -> LocalCorpus:
    """Return a corpus in which nothing follows from where rows lay, but the order of users of different keys.

    A user's documents are sorted by their tokens, those by their bytes. Users whose ids have equal fixed hashes, and
    who therefore weigh in the order of their places, are sorted by their documents. Users who agree in these, too, are
    alike.

    Args:
        corpus: may be changed in place; a token's id is its rank in the order of bytes.
        documents: whether a user's documents came without an order, unlike events in order of time.

    Raises:
        MemoryLimitError: where the documents of one user, or the keys of all, do not fit into the corpus's limit.
    """
    if documents and corpus.kind != "items":
        if corpus.limit is not None:
            size = BYTES_OF_POSITION * int(np.diff(corpus.user_start).max(initial=0))
            corpus.limit.require(size, "the documents of one user, to be put in the order of their contents,")
        for _ in in_order(lambda block: _sort(corpus, *block), user_spans(corpus.user_start, POSITIONS_AT_ONCE)):
            pass
    return _with_ties_settled(corpus)


def _sort(corpus: LocalCorpus, first: int, last: int) -> None:
    starts = corpus.user_start[first : last + 1]
    tokens = corpus.tokens[starts[0] : starts[-1]]
    begins = np.concatenate([[0], np.flatnonzero(tokens < 0) + 1])
    # The bytes of these numbers sort as the tokens do, and the end of a document comes first.
    letters = pa.py_buffer((tokens + np.int32(1)).astype(">i4"))
    buffers = [None, pa.py_buffer(4 * begins), letters]
    contents = pa.LargeBinaryArray.from_buffers(pa.large_binary(), begins.size - 1, buffers)
    owners = array_of(np.searchsorted(starts - starts[0], begins[:-1], side="right"))
    rows = pa.table({"owner": owners, "content": contents})
    order = pc.sort_indices(rows, sort_keys=[("owner", "ascending"), ("content", "ascending")])
    moved = np.empty_like(tokens)
    gather_slices(tokens, begins, numbers_of(order).astype(np.int64), moved)
    tokens[:] = moved
    forget_pages(corpus.tokens, int(corpus.user_start[first]), int(corpus.user_start[last]))


def _with_ties_settled(corpus: LocalCorpus) -> LocalCorpus:
    """Put users of one key, of whom there are hardly ever any, in the order of their content."""
    corpus.require("the keys of all users", per_token=0, per_user=16, per_word=0)
    keys = np.sort(corpus.user_key)
    shared = np.unique(keys[1:][keys[1:] == keys[:-1]])
    if not shared.size:
        return corpus
    corpus.require("users of the same key", per_token=12, per_user=40, per_word=0)
    starts = corpus.user_start
    order = np.arange(corpus.user_key.size)
    for key in shared:
        alike = np.flatnonzero(corpus.user_key == key).tolist()
        order[alike] = sorted(alike, key=lambda user: _held(corpus, user))
    tokens = np.concatenate([corpus.tokens[starts[user] : starts[user + 1]] for user in order])
    ends = np.cumsum(np.diff(starts)[order])
    user_start = np.concatenate([[0], ends]).astype(np.int64)
    return replace(corpus, tokens=tokens.astype(np.int32), user_start=user_start)


def _held(corpus: LocalCorpus, user: int) -> list[int]:
    """Return a user's content, in canonical order."""
    held = corpus.tokens[corpus.user_start[user] : corpus.user_start[user + 1]]
    found: list[int] = (np.sort(held) if corpus.kind == "items" else held).tolist()
    return found
