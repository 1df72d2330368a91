"""Tests that the positions of rows affect neither users nor their documents on Spark."""

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from support.look import read_engine
from voxpop.engine.spark.histogram import _summed
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import PolicyGaussian
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting
from voxpop.reading.limited import memory
from voxpop.reading.limited.memory import MemoryLimit

BITS = 40
PASS = "round 1/length 1"


def l2_shares(limit, cutoff):
    return CalibratedRule(PolicyGaussian(), RuleSetting(limit, 2, BITS, round(cutoff * 2**BITS)))


def collected(histogram):
    """Return the weights of a histogram of words, which only tests may collect."""
    found = _summed(histogram._weights).toArrow()
    sums = (np.asarray(found["high"]) << 31) + np.asarray(found["low"])
    return dict(zip((name.decode() for name in found["name"].to_pylist()), sums.tolist(), strict=True))


def local(histogram):
    return dict(zip(histogram._words.to_pylist(), histogram._weights.tolist(), strict=True))


def written(folder, parts):
    """Write one file for each part."""
    folder.mkdir()
    for number, part in enumerate(parts):
        part.write_parquet(folder / f"{number}.parquet")
    return str(folder)


@pytest.fixture
def in_files(spark):
    """Return a function that reads a folder on Spark, with one file per task, into the given number of partitions."""

    def read(folder, partitions, **columns):
        spark.conf.set("spark.sql.files.openCostInBytes", 1 << 30)
        return read_engine(
            spark.read.parquet(folder), user="who", options=vp.ReadOptions(partitions=partitions), **columns
        )

    return read


def visits(rng, users, prefix):
    """Return several rows of each user. Each row is a document of a few pages."""
    who = np.repeat(np.arange(users), 3)
    texts = [" ".join(f"{prefix}{page}" for page in rng.integers(0, 9, 4)) for _ in who]
    return pl.DataFrame({"who": who, "what": texts})


@pytest.fixture
def two_files():
    """Return two files with documents of every user, and rows of another user that make the smaller file larger.

    Spark reads the larger file first.
    """
    rng = np.random.default_rng(4)
    extra = pl.DataFrame({"who": [10**6] * 9, "what": [f"{rng.bytes(6000).hex()}" for _ in range(9)]})
    return visits(rng, 300, "a"), visits(rng, 300, "b").head(700), extra


def tree_of(corpus):
    """Return the counts of a release of sequences with very little noise."""
    alphabet = [f"{prefix}{page}" for prefix in "ab" for page in range(9)]
    tree = vp.Sequences(max_length=6, max_gram=3, alphabet=alphabet).release(corpus, vp.Budget(200), seed=3).tree
    return tree.counts.tolist(), tree.parents.tolist()


@pytest.mark.parametrize("partitions", [2, None])
def test_an_additional_user_changes_no_sequence_of_another_user(in_files, tmp_path, two_files, partitions):
    """If the order depended on positions, a file that becomes the largest would change the order of all documents."""
    one, other, extra = two_files
    fewer = in_files(written(tmp_path / "fewer", [one, other]), partitions, text="what")
    every = in_files(written(tmp_path / "every", [one, pl.concat([other, extra])]), partitions, text="what")
    assert tree_of(fewer) == tree_of(every)


@pytest.mark.parametrize("partitions", [3, None])
def test_sequences_equal_the_sequences_of_the_sorted_table(in_files, tmp_path, two_files, partitions):
    """The tree of sequences equals that of the local engine for the sorted rows."""
    rows = pl.concat(two_files[:2])
    spread = in_files(
        written(tmp_path / "rows", [rows.sample(fraction=1.0, shuffle=True, seed=1)]), partitions, text="what"
    )
    here = read_engine(rows.sort("who", "what"), user="who", text="what")
    assert tree_of(spread) == tree_of(here)


def test_two_exchanged_files_give_the_same_weights(in_files, tmp_path, two_files):
    """Neither sequences nor weights of l2-descent in two partitions depend on the order of files and rows."""
    one, other, _ = two_files
    both = pl.concat([one, other])
    secret, found = Secret.from_seed(2), []
    for number, parts in enumerate(([one, other], [other, one], [both.sample(fraction=1.0, shuffle=True, seed=5)])):
        corpus = in_files(written(tmp_path / str(number), parts), 2, text="what")
        weights = collected(corpus.weigh(l2_shares(5, 50.0), 5, secret, PASS))
        found.append((weights, tree_of(corpus)))
    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) == 18


def test_weights_in_one_partition_equal_the_weights_of_both_local_engines(in_files, tmp_path):
    """The weights are exactly equal for 3,000 users."""
    rng = np.random.default_rng(6)
    held = [[f"w{item}" for item in rng.choice(60, 6, replace=False)] for _ in range(3000)]
    rows = pl.DataFrame({"who": np.arange(3000) * 7, "what": held})
    same_on_three_paths(in_files, tmp_path, rows)


@pytest.mark.slow
def test_weights_of_a_million_users_equal_the_weights_of_both_local_engines(in_files, tmp_path):
    """Among 2^20 users, about 64 pairs would have equal hashes of 33 bits, so hashes must have more bits."""
    rng = np.random.default_rng(7)
    users = 1 << 20
    items = rng.integers(0, 40, (users, 4))
    items[:, 1] = (items[:, 0] + 1 + items[:, 1] % 19) % 40
    held = pl.Series(items[:, :2].tolist(), dtype=pl.List(pl.Int64))
    rows = pl.DataFrame({"who": rng.permutation(users), "what": held})
    same_on_three_paths(in_files, tmp_path, rows)


def same_on_three_paths(in_files, tmp_path, rows):
    """Compare weights in memory, within a memory limit and on Spark in one partition, for items far from any cutoff."""
    secret, shares = Secret.from_seed(1), l2_shares(4, 2.0**17)
    here = read_engine(rows, user="who", items="what")
    expected = local(here.weigh(shares, 4, secret, PASS))
    room = 1 << 24
    bounded = here.within(MemoryLimit(memory.FIXED_MEMORY + room, room, tmp_path))
    assert local(bounded.weigh(shares, 4, secret, PASS)) == expected
    spread = in_files(written(tmp_path / "rows", [rows[::2], rows[1::2]]), 1, items="what")
    assert collected(spread.weigh(shares, 4, secret, PASS)) == expected
