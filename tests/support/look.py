"""Functions that return the engine or the contents of a corpus."""

from itertools import pairwise
from typing import Any

import voxpop as vp
from voxpop.engine.contract import check_engine
from voxpop.engine.local.corpus import LocalCorpus


def read_engine(source: Any, **arguments: Any) -> Any:
    """Return the engine of the corpus that `voxpop.read` returns."""
    return check_engine(vp.read(source, **arguments))


def load_engine(folder: Any, **arguments: Any) -> Any:
    """Return the engine of a saved corpus."""
    return check_engine(vp.load_corpus(folder, **arguments))


def corpus_documents(corpus: LocalCorpus) -> list[list[list[str]]]:
    """Return the tokens of each document of each user."""
    words = corpus.vocabulary.to_pylist()
    users = []
    for start, end in pairwise(corpus.user_start):
        documents: list[list[str]] = [[]]
        for token in corpus.tokens[start:end]:
            if token < 0:
                documents.append([])
            else:
                documents[-1].append(words[token])
        users.append(documents[:-1])
    return users


def user_items(corpus: LocalCorpus) -> list[list[str]]:
    """Return the items of each user."""
    words = corpus.vocabulary.to_pylist()
    return [
        [words[token] for token in corpus.tokens[start:end] if token >= 0] for start, end in pairwise(corpus.user_start)
    ]
