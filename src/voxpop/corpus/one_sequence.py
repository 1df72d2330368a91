"""One sequence per user, in symbols of the public alphabet, cut to the most symbols one user may have."""

import numpy as np
import pyarrow.compute as pc

from voxpop.arrays import Int32s
from voxpop.arrow import numbers_of, string_array
from voxpop.corpus.draws import Draws
from voxpop.corpus.engine import Arrays, Combine
from voxpop.kernels.sequences import count_documents, cut_sequences


def one_sequence_each(
    corpus: Arrays, alphabet: tuple[str, ...], max_length: int, combine: Combine, secret: Draws
) -> Int32s:
    """Return every user's one sequence, each followed by the end mark: private.

    What a user's sequence is depends on the user's own documents, the alphabet and the secret alone. Tokens outside the
    alphabet are left out before anything is counted or cut.

    Args:
        corpus: the private side.
        alphabet: distinct, public.
        max_length: most symbols of one user.
        combine: "sample" draws one of a user's documents that hold a symbol, "concatenate" joins them in order.
        secret: source of the draw.

    Returns:
        int32, numbers of alphabet symbols and `len(alphabet)` behind each sequence; users without a symbol are absent.
    """
    # int32 by token: its symbol, -1 outside the alphabet; public alphabet, so nothing is learnt from it.
    names = symbol_names(corpus, alphabet)
    chosen = np.full(corpus.user_key.size, -1, np.int64)
    if combine == "sample":
        documents = np.zeros(corpus.user_key.size, np.int64)
        count_documents(corpus.tokens, corpus.user_start, names, documents)
        # Who has one document that holds a symbol needs no draw.
        several = np.flatnonzero(documents > 1)
        draws = secret.draws("sequences/sample", corpus.user_key[several], 0)[:, 0] >> np.uint64(32)
        chosen[:] = 0
        # floor(draw * documents / 2^32): uniform but for 2^-32, and the proof asks only that it follow from the user.
        chosen[several] = ((draws * documents[several].astype(np.uint64)) >> np.uint64(32)).astype(np.int64)
    # (users,), and one for the end mark.
    sizes = np.minimum(np.diff(corpus.user_start), max_length) + 1
    symbols = np.empty(int(sizes.sum()), np.int32)
    end = len(alphabet)
    size = cut_sequences(corpus.tokens, corpus.user_start, names, chosen, max_length, end, symbols)
    return symbols[:size]


def symbol_names(corpus: Arrays, alphabet: tuple[str, ...]) -> Int32s:
    """Return the symbol of each token of the vocabulary, -1 for those outside the alphabet."""
    found = pc.index_in(corpus.vocabulary, value_set=string_array(alphabet))
    # A copy: kernels would be compiled again for an array that cannot be written.
    return numbers_of(found, missing=-1).astype(np.int32)
