"""Tests that processing in parts and other methods for large corpora do not change any release."""

import numpy as np
import pytest
from benchmarks.datasets.phrases import write_texts

import voxpop as vp
from voxpop.engine.local import length_walk
from voxpop.engine.local import pools as pool_users
from voxpop.engine.local import weigh as weighing
from voxpop.engine.local.pools import Batch

PLAN = vp.NGrams(max_length=4).plan(vp.Budget(epsilon=8, delta=1e-5))


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Write texts with stock phrases, and return them as a corpus mapped from a file."""
    folder = tmp_path_factory.mktemp("large") / "texts"
    write_texts(folder, users=800, tokens=80_000, words=300, phrases=40)
    return vp.load_corpus(folder)


@pytest.mark.jit
def test_size_limits_of_methods_do_not_change_a_release(texts, monkeypatch):
    """Frequently freeing pages, processing names in small parts, and numbering pairs in one thread change no gram."""
    expected = PLAN.release(texts, seed=5)
    assert {len(gram) for gram in expected} == {1, 2, 3, 4}
    monkeypatch.setattr(pool_users, "ITEMS_BEFORE_FORGETTING", 1)
    monkeypatch.setattr(weighing, "_NAMES_AT_ONCE", 1000)
    monkeypatch.setattr(length_walk, "_NAMES_AT_ONCE", 1000)
    monkeypatch.setattr(length_walk, "POSITIONS_IN_PARTS", 0)
    found = PLAN.release(texts, seed=5)
    assert found.to_arrow().equals(expected.to_arrow())
    assert found.plan.to_dict() == expected.plan.to_dict()


@pytest.mark.parametrize("at_once", [1, 2, 1 << 20])
@pytest.mark.parametrize("weights", [[0, 3, 0, 0, 4, 0, 5], [1, 2, 0, 4, 5, 6, 7], [0, 0], [1], []])
def test_only_names_with_weight_remain(weights, at_once, monkeypatch):
    """The cases have few or nearly all names with weight, and parts of different sizes."""
    monkeypatch.setattr(weighing, "_NAMES_AT_ONCE", at_once)
    names = np.arange(len(weights)) * 10
    held = [(name, weight) for name, weight in zip(names.tolist(), weights, strict=True) if weight]
    found, kept = weighing._supported(names, np.array(weights, np.int64))
    assert list(zip(found.tolist(), kept.tolist(), strict=True)) == held


def test_pools_do_not_keep_the_memory_of_larger_arrays():
    """A slice of a large array would keep the memory of the entire array."""
    room = np.arange(1000, dtype=np.int32)
    batch = Batch.of(room[:3], np.array([0, 3]), np.array([7], np.uint64))
    assert batch.items.tolist() == [0, 1, 2]
    assert not np.shares_memory(batch.items, room)
