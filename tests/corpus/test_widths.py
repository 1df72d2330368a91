"""Tests that values are rejected if 32 or 63 bits cannot distinguish them.

The tests replace limits such as 2^31 with lower limits.
"""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from support.corpora import corpus_of
from support.look import read_engine
from voxpop.engine.local import length_walk as levels
from voxpop.errors import InputError, InternalError
from voxpop.mechanisms.ngrams import candidates
from voxpop.mechanisms.ngrams.candidates import MOST_ESTIMATE, MOST_GROUPS, NO_ESTIMATE, Candidates, Grams, Pairs
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import PolicyGaussian, Weighted
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting
from voxpop.reading import arrow as widths
from voxpop.reading.limited import memory
from voxpop.reading.limited.memory import MemoryLimit
from voxpop.reading.limited.sorter import WordRuns

SHARES = CalibratedRule(Weighted(), RuleSetting(9, 2))


def tiny(room):
    return MemoryLimit(room + memory.FIXED_MEMORY, room, Path("/tmp"))


@pytest.fixture
def few_numbers(monkeypatch):
    """Return a function that limits the available numbers."""
    return lambda most: monkeypatch.setattr(widths, "MOST_NUMBERS", most)


@pytest.mark.parametrize("who", [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1], ["a", "b", "c", "d", "e"]])
def test_more_users_than_numbers_are_rejected(few_numbers, who):
    """With more users than numbers, two users would have the same code and would be treated as one user."""
    table = pl.DataFrame({"who": who, "what": ["tea"] * 5})
    few_numbers(5)
    assert read_engine(table, user="who", items="what").user_key.size == 5
    few_numbers(4)
    with pytest.raises(InputError, match=r"2\^31 users cannot be numbered") as caught:
        read_engine(table, user="who", items="what")
    assert "5" not in str(caught.value)


@pytest.mark.parametrize("bounded", [False, True])
def test_more_users_than_marks_are_rejected(few_numbers, bounded):
    """A mark of 32 bits records the last user of each item.

    Beyond this number of users, an item of one user would count twice.
    """
    corpus = corpus_of([[["tea", "tea"]]] * 5)
    corpus = corpus.within(tiny(1 << 20)) if bounded else corpus
    few_numbers(4)
    with pytest.raises(InputError, match="users cannot be numbered"):
        corpus.weigh(SHARES, 9, Secret.from_seed(1))


def test_more_words_than_numbers_are_rejected(few_numbers, monkeypatch):
    """The limit applies in memory and to merges on disk."""
    runs = WordRuns(tiny(1 << 20))
    runs.add(corpus_of([[list("abc")]]).vocabulary)
    runs.add(corpus_of([[list("cde")]]).vocabulary)
    few_numbers(4)
    with pytest.raises(InputError, match="words or items cannot be numbered"):
        runs.merged()
    with pytest.raises(InputError, match="words or items cannot be numbered"):
        read_engine(pl.DataFrame({"who": [1], "what": ["a b c d e"]}), user="who", text="what")


@pytest.mark.parametrize(("bounded", "threads"), [(False, 1), (False, 3), (True, 1)])
def test_more_phrases_than_numbers_are_rejected(few_numbers, monkeypatch, bounded, threads):
    """Phrases are numbered in one thread, in several threads with merged numbers, or on disk."""
    monkeypatch.setattr(levels, "THREADS", threads)
    users = [[[f"w{number:04}" for number in range(first, first + 1000)]] for first in range(0, 3000, 1000)]
    corpus = corpus_of(users)
    walk = (corpus.within(tiny(1 << 24)) if bounded else corpus).length_walk()
    walk.keep(np.arange(3000))
    few_numbers(1 << 11)
    with pytest.raises(InputError, match="phrases of one length cannot be numbered"):
        walk.extend(Candidates.all_valid(Grams.of_tokens(3000), 3000, single=False))


def test_more_released_grams_than_ranks_are_rejected(few_numbers):
    """The ranks of released grams are 32-bit numbers, which limits the number of these grams."""
    walk = corpus_of([[list("abcde")]]).length_walk()
    few_numbers(4)
    with pytest.raises(InputError, match="phrases of one length cannot be numbered"):
        walk.keep(np.arange(5))


def test_a_walk_in_the_wrong_order_is_rejected():
    """Calls in the wrong order raise an error instead of an assertion, so that `python -O` also rejects them."""
    walk = corpus_of([[list("ab")]]).length_walk()
    with pytest.raises(InternalError, match="before the grams of length 1 were kept"):
        walk.extend(Candidates.all_valid(Grams.of_tokens(2), 2, single=False))
    with pytest.raises(InternalError, match="before the grams of length 1 were kept"):
        walk.state(single=False)


def test_an_order_of_users_must_be_drawn_at_the_first_length():
    """A weighting that needs an order is rejected at a later length, because the order is drawn at the first length."""
    walk = corpus_of([[list("ab")]]).length_walk()
    walk.weigh(SHARES, 9, Secret.from_seed(1), "length 1")
    walk.keep(np.arange(2))
    descent = CalibratedRule(PolicyGaussian(), RuleSetting(9, 2, 40, 2 << 40))
    with pytest.raises(InternalError, match="cannot have one at a later length"):
        walk.weigh(descent, 9, Secret.from_seed(1), "length 2")


def test_keys_of_candidates_increase_up_to_the_last_group():
    """With 2^27 groups or more, keys overflowed, and candidates were lost or invented.

    Such numbers of groups are now rejected.
    """
    last = np.array([MOST_GROUPS - 2, MOST_GROUPS - 1])
    keys = [candidates._key(last, np.int64(estimate)) for estimate in (NO_ESTIMATE, MOST_ESTIMATE, 0)]
    assert np.concatenate(keys).tolist() == [
        group * (MOST_ESTIMATE + 2) + MOST_ESTIMATE - estimate
        for estimate in (NO_ESTIMATE, MOST_ESTIMATE, 0)
        for group in last.tolist()
    ]
    group = np.array([MOST_GROUPS])
    with pytest.raises(InputError, match="overlap in at most"):
        _ = Pairs(group, group, np.zeros(1, np.int64), single=False).keys
    with pytest.raises(InputError, match="overlap in at most"):
        _ = Candidates(Pairs(group, group[:0], group[:0], single=False), np.zeros(1, np.int64)).count
