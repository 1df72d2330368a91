"""Small corpora for tests."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

import voxpop as vp
from naive.ngrams import Documents
from voxpop.engine.local.corpus import LocalCorpus


def corpus_of(users: Sequence[Documents], keys: Sequence[int] | None = None) -> vp.Corpus:
    """Return a corpus of users with the given keys (by default 0, 1, 2, ...).

    A user is a list of documents, and a document is a list of tokens.
    """
    words = sorted({word for user in users for document in user for word in document})
    rank = {word: number for number, word in enumerate(words)}
    positions = [[rank[word] for word in document] + [-1] for user in users for document in user]
    tokens = np.array([token for document in positions for token in document], np.int32)
    sizes = [sum(len(document) + 1 for document in user) for user in users]
    user_start = np.cumsum([0, *sizes]).astype(np.int64)
    user_key = np.array(range(len(users)) if keys is None else keys, np.uint64)
    return LocalCorpus(tokens, user_start, user_key, pa.array(words, pa.large_string()), "tokens")


def by_key(corpus: LocalCorpus) -> list[tuple[int, list[int]]]:
    """Return the key and the tokens of each user, sorted by key."""
    parts = np.split(np.asarray(corpus.tokens), corpus.user_start[1:-1])
    return sorted(zip(corpus.user_key.tolist(), (part.tolist() for part in parts), strict=True))
