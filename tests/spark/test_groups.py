"""Tests of groups of partitions, which order-dependent weightings use. The assignment to groups is public."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from placed import PlacedLevels, states_of
from test_tasks import BITS, shares_of

import voxpop as vp
from support.corpora import corpus_of
from support.strategies import written_users
from voxpop.engine.spark.frames import laid_together
from voxpop.engine.spark.tasks import GROUPS, gather, joined_arrays
from voxpop.engine.spark.tasks import corpus_of_arrays as corpus_at
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import PolicyGaussian

BUDGET = vp.Budget(4, 1e-8)


def told(corpus):
    """Return the tokens of each user, by user key."""
    words = corpus.vocabulary.to_pylist()
    spans = zip(corpus.user_start[:-1], corpus.user_start[1:], strict=True)
    documents = [[words[token] if token >= 0 else None for token in corpus.tokens[a:b]] for a, b in spans]
    return dict(zip(corpus.user_key.tolist(), documents, strict=True))


@settings(max_examples=50)
@given(written_users(), st.integers(1, 5), st.data())
def test_a_group_contains_the_users_of_its_partitions(users, count, data):
    """Every user occurs once, with tokens in order, and the vocabulary of the group has no duplicates."""
    keys = list(range(100, 100 + len(users)))
    places = [data.draw(st.integers(0, count - 1)) for _ in users]
    if not users:
        return
    states = states_of(users, keys, places)
    rows = [
        batch.set_column(1, "sender", pa.array([number] * batch.num_rows, pa.int32()))
        for number, state in enumerate(states)
        for batch in state
    ]
    cut = data.draw(st.booleans())  # A batch has rows of several partitions or is empty.
    batches = pa.Table.from_batches(rows).combine_chunks().to_batches() if cut else rows
    group = corpus_at(laid_together(list(gather(batches)))[0])
    assert told(group) == told(corpus_of(users, keys))
    words = group.vocabulary.to_pylist()
    assert len(set(words)) == len(words)


def test_a_corpus_without_partitions_has_no_groups():
    """Without partitions, the result is empty."""
    assert list(gather([])) == []


def test_partitions_beyond_the_number_of_groups_do_not_change_the_release(read_both, talk):
    """The number of a partition determines its group, so both tables have the same groups of users."""
    corpora = [read_both(talk, count)[1] for count in (GROUPS, 3 * GROUPS)]
    ngrams = vp.NGrams(max_length=3, max_phrases_per_user=4, max_spurious_share=0.4)
    one, other = (ngrams.release(corpus, BUDGET, seed=3) for corpus in corpora)
    assert len(one) > 20
    assert one.grams.equals(other.grams)
    words = vp.papers.SetUnion(4, "policy-gaussian", 5.0, "joint")
    once, again = (words.release(corpus, BUDGET, seed=3) for corpus in corpora)
    assert once.grams.equals(again.grams)


def test_one_group_gives_the_local_release(monkeypatch, read_both, talk):
    """All seven partitions are in the same group, so the order of users is that of the local engine."""
    monkeypatch.setattr("voxpop.engine.spark.tasks.GROUPS", 1)
    local, spread_out = read_both(talk, 7)
    ngrams = vp.NGrams(max_length=3, max_phrases_per_user=4, max_spurious_share=0.4)
    one, other = (ngrams.release(corpus, BUDGET, seed=3) for corpus in (local, spread_out))
    assert len(one) > 20
    assert one.grams.equals(other.grams)


def grouped_weights(users, keys, home_of):
    """Return the weights of words from the real tasks, for users in six partitions that are weighed in groups."""
    places = [key % 6 for key in keys]
    states = dict(zip(sorted(set(places)), states_of(users, keys, places), strict=True))
    homes = home_of({place: places.count(place) for place in states})
    groups = []
    for home in sorted(set(homes.values())):
        rows = [
            batch.set_column(1, "sender", pa.array([place] * batch.num_rows, pa.int32()))
            for place, state in states.items()
            if homes[place] == home
            for batch in state
        ]
        groups.append(list(gather(rows)))
    return PlacedLevels(groups).weigh(shares_of(PolicyGaussian(), 4), 4, Secret.from_seed(1), "x")


def by_number(sizes):
    """Return the group of each place, computed from the number of the place as in the engine."""
    return {place: place % 2 for place in sizes}


def by_size(sizes):
    """Return the groups of a broken variant that balances sizes, so that one additional user can swap groups."""
    homes, loads = {}, [0, 0]
    for place in sorted(sizes, key=lambda each: (-sizes[each], each)):
        homes[place] = loads.index(min(loads))
        loads[homes[place]] += sizes[place]
    return homes


def farthest(home_of, times):
    """Return the largest l2 change that one user makes to the summed histogram, over random collections."""
    rng, worst = np.random.default_rng(3), 0.0
    for _ in range(times):
        count = int(rng.integers(3, 14))
        users = [[["abcdef"[i] for i in rng.integers(0, 6, rng.integers(1, 6))]] for _ in range(count)]
        keys = rng.permutation(1000)[:count].tolist()
        one, other = grouped_weights(users, keys, home_of), grouped_weights(users[1:], keys[1:], home_of)
        moved = sum(((one.get(w, 0) - other.get(w, 0)) / 2**BITS) ** 2 for w in {*one, *other}) ** 0.5
        worst = max(worst, moved)
    return worst


def test_one_user_changes_the_sum_of_all_groups_by_at_most_one():
    """The test is a random search over neighbours with the real tasks."""
    assert 0.99 < farthest(by_number, 300) <= 1 + 1e-9


def test_the_search_detects_groups_that_depend_on_the_data():
    """In the broken variant, the group of a partition depends on the sizes of partitions, which the proof forbids."""
    assert farthest(by_size, 200) > 1.2


def test_joined_vocabularies_preserve_documents():
    """Tokens and ends of documents are the same after vocabularies are joined."""
    parts = [corpus_of([[["b", "a"], ["a"]]], [1]), corpus_of([[["a", "c"]]], [2])]
    from voxpop.engine.spark.tasks import _arrays_of

    group = corpus_at(joined_arrays([_arrays_of(part) for part in parts]))
    assert told(group) == {1: ["b", "a", None, "a", None], 2: ["a", "c", None]}
    assert np.array_equal(group.user_start, [0, 5, 8])
