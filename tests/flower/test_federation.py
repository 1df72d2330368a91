"""Tests of a federation without a network, in which the server skips lost and malformed answers."""

import json
from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from support.look import read_engine
from voxpop.errors import InputError
from voxpop.mechanisms.heavy_hitters.protocol import Prefix, Rules, Trie, gram_of, is_over
from voxpop.mechanisms.heavy_hitters.releasing import release_of_trie
from voxpop.privacy.secret import Secret
from voxpop.privacy.trie.ballot import Ballot
from voxpop_flower.federation import (
    next_trie,
    node_votes,
    read_trie,
    read_votes,
    write_trie,
    write_votes,
)

RULES = Rules(Ballot(0.5, 2), 4, 1, 4)
GROWN = Trie().grown(frozenset([Prefix(("a",))]))
PREFIXES = st.builds(
    Prefix, st.lists(st.one_of(st.text(max_size=2), st.integers(0, 255)), max_size=4).map(tuple), st.booleans()
)


def table(first: int, count: int) -> pl.DataFrame:
    users = list(range(first, first + count))
    words = [["sun", "sun", "moon"][user % 3] if user % 5 else f"own{user}" for user in users]
    return pl.DataFrame({"who": users, "what": words})


@pytest.mark.parametrize("alphabet", ["characters", "bytes"])
def test_nodes_and_messages_give_the_result_of_the_simulation(alphabet):
    """Three nodes send sums of votes as text. The result equals the result for a single corpus with the same secret."""
    plan = vp.HeavyHitters(alphabet=alphabet).plan(vp.Budget(4, 1e-7))
    tables = [table(first, 40) for first in (0, 40, 80)]  # Few more users than the plan needs.
    nodes = [read_engine(each, user="who", items="what") for each in tables]
    secret, trie = Secret.from_seed(3), Trie()
    while not is_over(trie, plan.rules):
        told = read_trie(write_trie(trie))
        assert told == trie
        answers = [
            (number, write_votes(node_votes(node, told, plan.rules, secret))) for number, node in enumerate(nodes)
        ]
        trie, complaints = next_trie(trie, range(3), answers, plan.rules)
        assert complaints == []
    found = release_of_trie([gram_of(word, alphabet) for word in trie.words], plan, plan.guarantee)
    whole = plan.release(read_engine(pl.concat(tables), user="who", items="what"), seed=3)
    assert list(found) == list(whole) == ["moon", "sun"]


@given(st.lists(st.frozensets(PREFIXES, max_size=5), max_size=4))
def test_tries_can_be_written_and_read(levels):
    """Any trie is unchanged after writing and reading, and equal tries have the same text."""
    trie = Trie(tuple(levels))
    assert read_trie(write_trie(trie)) == trie


MALFORMED = [
    3,
    "",
    "{}",
    "[[[]]]",
    "[" * 5000,
    json.dumps([[["a", "b"], False, -1]]),
    json.dumps([[["a", "b"], False, 0]]),
    json.dumps([[["a", "b"], False, 1.5]]),
    json.dumps([[["a", "b"], False, True]]),
    json.dumps([[["a", "b"], False, 1], [["a", "b"], False, 1]]),
    json.dumps([[["b", "b"], False, 1]]),
    json.dumps([[["a", "b", "c"], False, 1]]),
    json.dumps([[["a", ["b"]], False, 1]]),
    json.dumps([[["a", None], False, 1]]),
    json.dumps([[["a"], False, 1]]),
    json.dumps([[["a", "b"], 1, 1]]),
    json.dumps([[["a", "b"], False]]),
    json.dumps([[["a", "b"], False, 10**30]]),
]


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_votes_are_dropped_and_reported(text):
    """The round continues without a node that sends malformed votes.

    The log reports the failure and does not quote the answer.
    """
    with pytest.raises(InputError):
        read_votes(text, GROWN, RULES)
    good = write_votes(Counter({Prefix(("a", "b")): 2}))
    trie, complaints = next_trie(GROWN, [1, 2], [(1, text), (2, good)], RULES)
    assert trie.levels[-1] == {Prefix(("a", "b"))}
    assert len(complaints) == 1
    assert complaints[0].startswith("round 2: node 1 sent an invalid vote")


def test_lost_late_and_repeated_answers_do_not_change_the_result():
    """The server skips nodes that do not answer, and reports them. Repeated and unrequested answers are not counted."""
    good = write_votes(Counter({Prefix(("a", "b")): 1}))
    trie, complaints = next_trie(GROWN, [1, 2], [(1, good), (1, good), (9, good)], RULES)
    assert trie.levels[-1] == frozenset()
    assert complaints == ["round 2: node 2 did not answer in time; the round continues without it"]
    trie, complaints = next_trie(GROWN, [1, 2], [(1, None), (2, good)], RULES)
    assert complaints == ["round 2: node 1 refused or failed; the round continues without it"]
    trie, complaints = next_trie(GROWN, [1, 2], [(1, good), (2, good)], RULES)
    assert trie.levels[-1] == {Prefix(("a", "b"))}
    assert complaints == []
