"""Tests that compare the length walk on the real kernels with a reference implementation of tuples and sets."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxpop as vp
from naive import ngrams as naive_ngrams
from naive import weighing as naive
from support.corpora import corpus_of
from support.look import load_engine
from support.strategies import written_users
from voxpop.engine.local import length_walk as levels_module
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.engine.local.weigh import weighing_order
from voxpop.errors import InputError
from voxpop.mechanisms.ngrams.candidates import Candidates, Grams, Pairs
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import PolicyGaussian, Weighted
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting

BITS = 40
WORDS = "abcd"


def naive_weights(users, length, candidates, weighting, limit, keys, secret, pass_name, name_of):
    """Return the weights that the reference implementation computes from bounded sets with the library's own draws."""

    def priority(number, gram):
        first, second = np.array([keys[number]], np.uint64), np.array([name_of[gram]], np.uint64)
        return int(secret.draws(f"sample/{pass_name}", first, second)[0, 0])

    order = range(len(users))
    if weighting == "policy-gaussian":
        order = weighing_order(np.array(keys, np.uint64), secret, "all lengths").tolist()
    held = [naive_ngrams.held([users[number]], length, candidates)[0] for number in order]
    bounded = naive.bounded_sets(held, limit, lambda place, gram: priority(order[place], gram))
    if weighting == "weighted":
        return naive.weigh_weighted(bounded, 2)
    return naive.weigh_l2_descent(bounded, 2.0)


def shares_of(weighting, limit):
    weighting_rule = Weighted() if weighting == "weighted" else PolicyGaussian()
    return CalibratedRule(
        weighting_rule, RuleSetting(limit, 2, BITS, 2 << BITS if weighting == "policy-gaussian" else 0)
    )


@given(
    users=written_users(WORDS),
    data=st.data(),
    weighting=st.sampled_from(["weighted", "policy-gaussian"]),
    limit=st.integers(1, 5),
    single=st.booleans(),
    threads=st.integers(1, 3),
)
@settings(max_examples=150)
def test_weights_at_every_length_equal_the_reference_implementation(users, data, weighting, limit, single, threads):
    """The examples cover lengths 1 to 4, any released sets, both pruning rules, any estimates, and 1 to 3 threads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels_module, "THREADS", threads)
        walk_and_compare(users, data, weighting, limit, single)


def walk_and_compare(users, data, weighting, limit, single):
    """Walk with released sets that hypothesis draws, and compare all weights at each length."""
    corpus, secret = corpus_of(users), Secret.from_seed(5)
    keys, words = corpus.user_key.tolist(), corpus.vocabulary.to_pylist()
    levels, shares = corpus.length_walk(), shares_of(weighting, limit)
    candidates = {(word,) for word in words}
    name_of = {(word,): number for number, word in enumerate(words)}
    grams, released = Grams.of_tokens(0), [(word,) for word in words]
    for length in range(1, 5):
        pass_name = f"length {length}"
        histogram = levels.weigh(shares, limit, secret, pass_name)
        drawn_by = {gram: naive.word_name(secret, gram[0]) for gram in candidates} if length == 1 else name_of
        expected = naive_weights(users, length, candidates, weighting, limit, keys, secret, pass_name, drawn_by)
        gram_of = {name: gram for gram, name in name_of.items()}
        found = {gram_of[int(i)]: w / 2**BITS for i, w in zip(histogram._ids, histogram._weights, strict=True)}
        assert found.keys() == {gram for gram, weight in expected.items() if weight > 0}
        assert all(found[gram] == pytest.approx(expected[gram], abs=1e-6) for gram in found)
        released = sorted(data.draw(st.sets(st.sampled_from(sorted(candidates))), label="kept") if candidates else [])
        names = np.array(sorted(name_of[gram] for gram in released), np.int64)
        levels.keep(names)
        if length == 1:
            words = [word for (word,) in released]
        grams = Grams.of_tokens(names.size) if length == 1 else grams.longer(names, single=single)
        assert [tuple(words[token] for token in row) for row in grams.tokens] == released
        compare_kept(levels, users, length, set(released), limit, released)
        valid = Candidates.all_valid(grams, len(words), single=single)
        pruned = prune(valid, data)
        levels.extend(pruned)
        listed = pruned.names(np.arange(pruned.count)).tolist()
        last = words if single else [gram[-1] for gram in released]
        name_of = {(*released[name >> 32], last[name & 0xFFFFFFFF]): name for name in listed}
        candidates = set(name_of)


def compare_kept(levels, users, length, kept, limit, released):
    """Check that, between `keep` and `extend`, the walk weighs the released grams by their ranks."""
    secret = Secret.from_seed(9)
    name_of = {gram: rank for rank, gram in enumerate(released)}
    keys = list(range(len(users)))
    histogram = levels.weigh(shares_of("weighted", limit), limit, secret, "again")
    expected = naive_weights(users, length, kept, "weighted", limit, keys, secret, "again", name_of)
    found = {released[int(i)]: w / 2**BITS for i, w in zip(histogram._ids, histogram._weights, strict=True)}
    assert found == pytest.approx(expected, abs=1e-6)


def prune(valid, data):
    """Return the candidates with random needs and estimates.

    Some left grams need larger estimates than some partners have.
    """

    def numbers(size, label):
        # One draw of bytes takes less time than a draw of each number.
        drawn = data.draw(st.binary(min_size=size, max_size=size), label=label)
        return np.array([each % 3 for each in drawn], np.int64)

    need, pairs = numbers(valid.need.size, "need"), valid.pairs
    estimates = numbers(valid.estimates.size, "estimates")
    return Candidates(Pairs(pairs.left_group, pairs.partner_group, estimates, pairs.single), need)


def test_items_have_no_order_and_are_rejected():
    """The message lists the arguments for ordered data."""
    corpus = corpus_of([[["a"]]])
    items = LocalCorpus(corpus.tokens, corpus.user_start, corpus.user_key, corpus.vocabulary, "items")
    levels = items.length_walk()
    levels.keep_words(pa.array(["a"], pa.large_string()))
    nothing = np.zeros(1, np.int64)
    with pytest.raises(InputError, match="text=, tokens= or sequence="):
        levels.extend(Candidates(Pairs(nothing, nothing, nothing, single=False), nothing))
    with pytest.raises(InputError, match="text=, tokens= or sequence="):
        vp.NGrams(max_length=2).release(items, vp.Budget(4, 1e-7))


def walk_two(corpus):
    """Return the ids and weights of two lengths, with all words kept."""
    levels = corpus.length_walk()
    first = levels.weigh(shares_of("weighted", 5), 5, Secret.from_seed(1), "x")
    levels.keep(np.array([0, 1]))
    levels.extend(Candidates.all_valid(Grams.of_tokens(2), 2, single=False))
    second = levels.weigh(shares_of("weighted", 5), 5, Secret.from_seed(1), "y")
    return [(each._ids.tolist(), each._weights.tolist()) for each in (first, second)]


def test_a_mapped_corpus_gives_the_same_weights(tmp_path):
    """The weights are the same, although the walk returns pages to the system and reads them again."""
    corpus = corpus_of([[["a", "b", "a"]], [["b", "a"]]] * 50)
    corpus.save(tmp_path / "corpus")
    assert walk_two(load_engine(tmp_path / "corpus")) == walk_two(corpus)
    assert sorted(walk_two(corpus)[1][0]) == [1, 1 << 32]
