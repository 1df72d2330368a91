"""Tests that the same privacy rules run in memory, within a memory limit and on Spark (docs/design/0014)."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.corpora import corpus_of
from support.strategies import written_users
from support.three_paths import tiny, weigh_on_spark, weights_of
from voxpop.engine.local import weigh as bound
from voxpop.engine.local.weigh import Histogram
from voxpop.engine.spark import histogram
from voxpop.privacy.decisions import CellNoise, NoisyLevels, ReleaseDecisions, ThresholdRule
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import WEIGHTINGS, PolicyLaplace
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting

"""Every weighting that all three paths support, with a norm in which it is valid."""


def shares_of(weighting_rule, limit):
    norm = 1 if isinstance(weighting_rule, PolicyLaplace) else 2
    return CalibratedRule(weighting_rule, RuleSetting(limit, norm, 40, 3 << 40 if weighting_rule.sequential else 0))


@given(
    users=written_users("abcdef", users=12),
    weighting_rule=st.sampled_from(list(WEIGHTINGS.values())),
    limit=st.integers(1, 4),
    seed=st.integers(0, 9),
    at_once=st.sampled_from([1, 3, 1 << 19]),
)
@settings(max_examples=150, deadline=None)
def test_items_have_equal_weights_on_all_three_paths(users, weighting_rule, limit, seed, at_once):
    """Distinct items, samples, order and shares agree exactly, for any number of tokens in memory at once."""
    secret, shares = Secret.from_seed(seed), shares_of(weighting_rule, limit)
    corpus = corpus_of(users, [(7 * number) % 31 for number in range(len(users))])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bound, "TOKENS_AT_ONCE", at_once)
        patch.setattr(bound, "FEW_TOKENS_AT_ONCE", at_once)
        engines = corpus, corpus.within(tiny(1 << 12))
        here, bounded = (weights_of(each.weigh(shares, limit, secret, "length 1")) for each in engines)
        assert bounded == here
        assert weigh_on_spark(corpus, shares, secret, "length 1") == here


RULES = tuple(ThresholdRule("gaussian", 1.0, threshold << 20, 2.0**-20) for threshold in (1, 2, 3))
WEIGHTS = st.dictionaries(st.integers(0, 60), st.integers(1, 5 << 20), max_size=40)


def rows_of(weights, spurious_names=()):
    """Return rows as Spark computes them, with the weight of each name and the levels of spurious names."""
    theirs = dict(spurious_names)
    names = sorted({*weights, *theirs})
    columns = {"low": [weights.get(name, 0) for name in names], "spurious": [theirs.get(name, 0) for name in names]}
    columns = {"name": names, "high": [0] * len(names), **columns}
    return pa.RecordBatch.from_pydict({key: pa.array(column, pa.int64()) for key, column in columns.items()})


def by_bytes(batch, words):
    """Return the rows with each name replaced by the bytes of its word."""
    named = [words[name].encode() for name in batch["name"].to_pylist()]
    return batch.set_column(0, "name", pa.array(named, pa.binary()))


@given(weights=WEIGHTS, spurious_names=st.dictionaries(st.integers(0, 60), st.integers(1, 3)), seed=st.integers(0, 9))
def test_decisions_are_the_same_on_a_histogram_and_in_a_task(weights, spurious_names, seed):
    """Both paths agree on released items, on the levels that items and spurious names reach, and on measurements."""
    secret = Secret.from_seed(seed)
    ids = np.array(sorted(weights), np.int64)
    local = Histogram(ids, np.array([weights[number] for number in ids.tolist()], np.int64))
    coins, levels = ReleaseDecisions(RULES[1], secret, "noise/x"), NoisyLevels(RULES, secret, "noise/x")
    (passed,) = histogram.level([rows_of(weights)], levels=coins.restricted(), words=False)
    assert passed["name"].to_pylist() == local.chosen(coins).tolist()
    theirs = np.array([spurious_names[name] for name in sorted(spurious_names)], np.int64)
    names, reached = local.noisy_levels(levels, np.array(sorted(spurious_names), np.int64), theirs)
    (noisy_levels,) = histogram.level([rows_of(weights, spurious_names)], levels=levels.restricted(), words=False)
    assert noisy_levels.to_pydict() == {"name": names.tolist(), "level": reached.tolist()}
    noise = CellNoise(1.0, 1 << 20, 1 << 15, secret, "noise/y")
    (cells,) = histogram.add_noise([rows_of(weights, dict.fromkeys(range(61), 0))], noise=noise.restricted())
    assert cells["cells"].to_pylist() == local.measured(noise, 61).tolist()


@given(weights=WEIGHTS, seed=st.integers(0, 9))
@settings(max_examples=50, deadline=None)
def test_the_noise_of_a_word_depends_on_its_bytes_on_both_engines(weights, seed):
    """The noise of a word depends on the bytes of the word and not on its number in a path."""
    secret, words = Secret.from_seed(seed), [f"w{number:02}" * (1 + number % 9) for number in range(61)]
    ids = np.array(sorted(weights), np.int64)
    texts = pa.array([words[number] for number in ids.tolist()], pa.large_string())
    local = Histogram(np.arange(ids.size), np.array([weights[number] for number in ids.tolist()], np.int64), texts)
    coins = ReleaseDecisions(RULES[1], secret, "noise/x")
    rows = by_bytes(rows_of(weights), words)
    (passed,) = histogram.level([rows], levels=coins.restricted(), words=True)
    released = local.texts(local.chosen(coins)).to_pylist()
    assert [name.decode() for name in passed["name"].to_pylist()] == released
