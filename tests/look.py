"""Looking into a corpus."""

import voxpop as vp


def corpus_documents(corpus: vp.Corpus) -> list[list[list[str]]]:
    """Return the tokens of each document of each user."""
    words = corpus.vocabulary.to_pylist()
    users = []
    for start, end in zip(corpus.user_start[:-1], corpus.user_start[1:], strict=True):
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
    starts = corpus.user_start
    return [
        [words[token] for token in corpus.tokens[start:end] if token >= 0]
        for start, end in zip(starts[:-1], starts[1:], strict=True)
    ]
