"""Documents of users in the order of what they hold: the kernel beside Python's own sorting."""

import numpy as np
import pytest

from voxpop.kernels.group import comes_before, most_of_one_user, sort_documents


def laid_out(users):
    """Return the arrays of users, each a list of documents."""
    tokens = [token for documents in users for document in documents for token in (*document, -1)]
    sizes = [sum(len(document) + 1 for document in documents) for documents in users]
    return np.array(tokens, np.int32), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@pytest.mark.parametrize("seed", range(5))
def test_documents_are_sorted_as_lists_are(seed):
    """Empty ones first, beginnings before what goes on; nobody's documents become another's."""
    rng = np.random.default_rng(seed)
    users = [[rng.integers(0, 3, rng.integers(0, 5)).tolist() for _ in range(rng.integers(0, 40))] for _ in range(60)]
    tokens, starts = laid_out(users)
    sort_documents(tokens, starts, 0, len(users))
    assert tokens.tolist() == laid_out([sorted(documents) for documents in users])[0].tolist()


def test_only_the_users_asked_for_are_sorted():
    """Blocks of users are sorted by several threads."""
    users = [[[2], [1]], [[2, 0], [2]], [[5], [4]]]
    tokens, starts = laid_out(users)
    sort_documents(tokens, starts, 1, 2)
    assert tokens.tolist() == [2, -1, 1, -1, 2, -1, 2, 0, -1, 5, -1, 4, -1]
    assert most_of_one_user(starts) == 5
    assert most_of_one_user(starts[:1]) == 0


def test_equal_documents_come_neither_before_nor_behind():
    tokens, _ = laid_out([[[1, 2], [1, 2], [1]]])
    assert not comes_before(tokens, 0, 3)
    assert not comes_before(tokens, 3, 0)
    assert comes_before(tokens, 6, 0)
