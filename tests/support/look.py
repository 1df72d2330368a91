"""Looking into a corpus."""

from itertools import pairwise

import voxpop as vp


def corpus_documents(corpus: vp.Corpus) -> list[list[list[str]]]:
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


def user_items(corpus: vp.Corpus) -> list[list[str]]:
    """Return the items of each user."""
    words = corpus.vocabulary.to_pylist()
    return [
        [words[token] for token in corpus.tokens[start:end] if token >= 0] for start, end in pairwise(corpus.user_start)
    ]
