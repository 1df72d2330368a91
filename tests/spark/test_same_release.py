"""Tests that the same secret gives the same release on both engines, for any number of partitions."""

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from support.languages import SENTENCES, SIGNS
from support.look import read_engine
from voxpop.engine.spark.frames import LOW_BITS
from voxpop.engine.spark.histogram import _summed
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import Weighted
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting

BUDGET = vp.Budget(epsilon=4, delta=1e-8)
SHARES = CalibratedRule(Weighted(), RuleSetting(3, 2))


def collected(histogram):
    """Return the weights of a histogram, which only tests may collect."""
    found = {}
    for row in _summed(histogram._weights).collect():
        name = bytes(row["name"]).decode() if histogram._words else row["name"]
        found[name] = (row["high"] << LOW_BITS) + row["low"]
    return found


@pytest.mark.parametrize("sentences", [False, True])
def test_words_of_every_language_are_the_same(read_both, sentences):
    """The texts are in 69 languages, or contain special characters and addresses."""
    texts = [*SENTENCES.values(), *SIGNS]
    table = pl.DataFrame({"who": range(2 * len(texts)), "what": [*texts, *texts]})
    local, spread = read_both(table, 3, text="what", tokenizer=vp.Tokenizer(sentences=sentences))
    secret = Secret.from_seed(5)
    pairs = [each.length_walk().weigh(SHARES, 3, secret, "length 1") for each in (local, spread)]
    words = local.vocabulary.take(pairs[0]._ids.tolist()).to_pylist()
    assert len(words) > 300
    assert collected(pairs[1]) == dict(zip(words, pairs[0]._weights.tolist(), strict=True))


@pytest.mark.parametrize("partitions", [1, 4])
def test_histograms_are_exactly_the_same(read_both, talk, partitions):
    """Users have several rows and more words than the limit."""
    local, spread = read_both(talk, partitions)
    secret, levels, walk = Secret.from_seed(5), local.length_walk(), spread.length_walk()
    one, other = levels.weigh(SHARES, 3, secret, "length 1"), walk.weigh(SHARES, 3, secret, "length 1")
    words = local.vocabulary.take(one._ids.tolist()).to_pylist()
    assert collected(other) == dict(zip(words, one._weights.tolist(), strict=True))


def test_weighted_phrases_are_the_same_in_any_number_of_partitions(read_both, talk):
    """DPNE runs on 1 and 9 partitions. Users exceed the limit, and released phrases include some that no user wrote."""
    ngrams = vp.papers.DPNE(max_length=4, max_phrases_per_user=4, max_spurious_share=0.4)
    releases = [ngrams.release(read_both(talk, count)[1], BUDGET, seed=3) for count in (1, 9)]
    local = ngrams.release(read_both(talk)[0], BUDGET, seed=3)
    assert len(local) > 20
    assert local.grams.equals(releases[0].grams)
    assert local.grams.equals(releases[1].grams)
    assert local.plan.to_dict() == releases[0].plan.to_dict() == releases[1].plan.to_dict()


def test_published_budgets_release_the_same_phrases(read_both, talk):
    """Candidates, budgets and unsupported phrases agree. Other settings are in `test_contract.py`."""
    local, spread = read_both(talk)
    ngrams = vp.papers.DPNE(max_length=4, max_phrases_per_user=3, max_spurious_share=0.3, ratio=1.2)
    assert ngrams.release(local, BUDGET, seed=1).grams.equals(ngrams.release(spread, BUDGET, seed=1).grams)


def test_users_with_one_item_each_get_the_same_selection(read_both):
    """The optimal rule releases the same items. In this test, items are numbers."""
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"who": np.arange(3000), "what": (60 * rng.random(3000) ** 3).astype(np.int64)})
    local, spread = read_both(table, items="what")
    plan = vp.papers.OptimalSelection().plan(vp.Budget(1, 1e-6))
    one, other = (plan.release(corpus, seed=2) for corpus in (local, spread))
    assert one.grams.equals(other.grams)
    assert len(one) > 10


def test_descent_in_one_partition_equals_the_local_engine(read_both, talk):
    """Users are weighed in the same order. The order of their documents does not affect the release."""
    local, spread = read_both(talk, 1)
    ngrams = vp.NGrams(max_length=3, max_phrases_per_user=4)
    assert ngrams.release(local, BUDGET, seed=6).grams.equals(ngrams.release(spread, BUDGET, seed=6).grams)
    union = vp.papers.SetUnion(4, "policy-gaussian", 5.0, "joint")
    assert union.release(local, BUDGET, seed=6).grams.equals(union.release(spread, BUDGET, seed=6).grams)


def test_descent_in_several_partitions_releases_almost_the_same_items(read_both, talk):
    """A partition can add weight to items with sufficient weight in other partitions, so releases differ slightly."""
    local, spread = read_both(talk, 6)
    union = vp.papers.SetUnion(4, "policy-gaussian", 5.0, "joint")
    one, other = (set(union.release(corpus, BUDGET, seed=6)) for corpus in (local, spread))
    assert len(one & other) >= 0.8 * len(one) > 5


@pytest.mark.parametrize("other", [None, "all others"])
def test_contexts_are_the_same_on_spark_and_on_the_local_engine(read_both, talk, other):
    """If rows are sorted by content, the sequences of users and the contexts equal those of the local engine."""
    _, spread = read_both(talk)
    local = read_engine(talk.sort("who", "what"), user="who", text="what")
    alphabet = ["thank", "you", "very", "much", "see", "soon", "how", "are"]
    sequences = vp.Sequences(max_length=6, max_gram=4, alphabet=alphabet, other=other)
    mine, theirs = (sequences.release(corpus, vp.Budget(20), seed=3).tree for corpus in (local, spread))
    assert mine.counts.tolist() == theirs.counts.tolist()
    assert mine.before.tolist() == theirs.before.tolist()
    assert mine.parents.tolist() == theirs.parents.tolist()
    assert mine.steps == theirs.steps
    assert mine.depths.max() > 1


def test_the_same_steps_are_counted(read_both):
    """Most sequences are short, so not all steps of long sequences are counted."""
    pages = [["tea"], ["tea", "milk"], ["milk", "tea", "tea", "tea", "milk", "milk", "tea"]] + [["tea"]] * 9
    table = pl.DataFrame({"who": range(2400), "what": pages * 200})
    local, spread = read_both(table, sequence="what")
    sequences = vp.Sequences(max_length=9, max_gram=3, alphabet=["tea", "milk"])
    mine, theirs = (sequences.release(corpus, vp.Budget(8), seed=3).tree for corpus in (local, spread))
    assert mine.steps == theirs.steps < 9
    assert mine.counts.tolist() == theirs.counts.tolist()


def test_a_large_alphabet_gets_the_same_noise(read_both, monkeypatch):
    """On Spark, noise is drawn in blocks of contexts."""
    monkeypatch.setattr("voxpop.engine.spark.walks.NODES_AT_ONCE", 3)
    rng = np.random.default_rng(2)
    pages = [(40 * rng.random(6) ** 2).astype(int).tolist() for _ in range(3000)]
    table = pl.DataFrame({"who": range(3000), "what": pages})
    local, spread = read_both(table, sequence="what")
    sequences = vp.Sequences(max_length=6, max_gram=3, alphabet=[str(number) for number in range(2000)])
    one, other = (sequences.release(corpus, vp.Budget(40), seed=3).tree for corpus in (local, spread))
    assert one.counts.tolist() == other.counts.tolist()
    assert one.nodes > 10


def test_users_with_string_keys_have_the_same_draws(read_both, talk):
    """On both engines, user keys are hashes of the same bytes."""
    named = talk.with_columns(who=pl.format("Ünï {}", pl.col("who")))
    local, spread = read_both(named)
    union = vp.papers.SetUnion(2, "weighted", accounting="joint")
    one, other = (union.release(corpus, BUDGET, seed=4) for corpus in (local, spread))
    assert one.grams.equals(other.grams)
    assert one.token_source == other.token_source == "words"


@pytest.mark.data
@pytest.mark.slow
def test_grams_of_real_visits_are_the_same_on_spark_and_on_the_local_engine(spark, data_dir):
    """For MSNBC and lengths up to 6, DPNE releases the same grams on both engines."""
    ngrams = vp.papers.DPNE(max_length=6, max_phrases_per_user=10)
    path = str(data_dir / "msnbc.parquet")
    local = read_engine(path, user="user", sequence="sequence")
    spread = read_engine(
        spark.read.parquet(path), user="user", sequence="sequence", options=vp.ReadOptions(partitions=2)
    )
    one, other = (ngrams.release(corpus, vp.Budget(1, 1e-7), seed=8) for corpus in (local, spread))
    assert one.grams.equals(other.grams)
    assert len(one) > 1000
