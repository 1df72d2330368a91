"""Tests of comparisons of models with their data, and of samples as tables of events."""

from functools import cache

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from support.look import read_engine
from voxpop.errors import InputError

STEPS = ["open", "check", "approve", "pay"]


@cache
def cases(users=6_000, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(users):
        steps = ["open"]
        while rng.random() < 0.7 and len(steps) < 8:
            steps.append(STEPS[(STEPS.index(steps[-1]) + 1 + (rng.random() < 0.1)) % 4])
        rows.append(steps)
    return read_engine(pl.DataFrame({"who": range(users), "steps": rows}), user="who", sequence="steps")


@pytest.mark.jit
def test_models_with_a_larger_epsilon_resemble_the_data_more():
    """At a large epsilon, the model and the data are almost the same.

    At a small epsilon, the differences are at least twice as large.
    """
    corpus, mechanism = cases(), vp.Sequences(alphabet=STEPS)
    found = [vp.evaluate(mechanism.release(corpus, vp.Budget(epsilon), seed=1), corpus).facts for epsilon in (0.02, 50)]
    poor, good = found
    assert (
        set(poor)
        == set(good)
        == {
            "relative error of the number of users",
            *(f"distance of {what}" for what in ("lengths", "first symbols", "last symbols", "next symbols")),
            *(f"relative error of runs of {length}" for length in (1, 2, 3, 4)),
            "of the 100 most frequent runs, found",
        }
    )
    assert all(good[name] < 0.06 for name in good if name.startswith("distance"))
    assert all(good[f"relative error of runs of {length}"] < 0.1 for length in (1, 2, 3, 4))
    assert good["of the 100 most frequent runs, found"] > 0.8
    for name in (
        "distance of lengths",
        "distance of next symbols",
        "relative error of runs of 2",
        "relative error of runs of 3",
    ):
        assert poor[name] > 2 * good[name]
    assert poor["of the 100 most frequent runs, found"] < good["of the 100 most frequent runs, found"]


@pytest.mark.jit
def test_distances_are_measured_on_drawn_sequences():
    """Distances from the data of another process agree with the distances of 50,000 other drawn sequences."""
    model = vp.Sequences(alphabet=STEPS).release(cases(), vp.Budget(20), seed=1)
    users, other = 3_000, ["pay", "check", "check"]
    corpus = read_engine(pl.DataFrame({"who": range(users), "steps": [other] * users}), user="who", sequence="steps")
    found = vp.evaluate(model, corpus).facts
    drawn = model.sample(50_000, seed=2)["sequence"]
    exact = {
        "lengths": (drawn.list.len() != 3).mean(),
        "first symbols": (drawn.list.first() != "pay").mean(),
        "last symbols": (drawn.list.last() != "check").mean(),
    }
    assert exact["lengths"] > 0.5
    for name, distance in exact.items():
        assert found[f"distance of {name}"] == pytest.approx(distance, abs=0.02)


def test_the_comparison_is_marked_private():
    """The first line of the text contains the mark. A corpus of items is rejected, because items have no order."""
    corpus = cases(300)
    model = vp.Sequences(alphabet=STEPS, other="(other)").release(corpus, vp.Budget(8), seed=1)
    found = vp.evaluate(model, corpus)
    assert str(found).startswith("PRIVATE")
    assert found.to_dict()["private"].startswith("PRIVATE")
    items = read_engine(pl.DataFrame({"who": [1], "what": ["a"]}), user="who", items="what")
    with pytest.raises(InputError, match="order"):
        vp.evaluate(model, items)


def test_events_contain_the_drawn_sequences():
    """A table of events contains the sequences of `sample`, and can be read again without names of columns."""
    model = vp.Sequences(alphabet=STEPS).release(cases(600), vp.Budget(8), seed=1)
    events = model.to_events(200, seed=3)
    sampled = model.sample(200, seed=3)
    joined = events.group_by("case", maintain_order=True).agg(pl.col("activity").sort_by("time"))
    assert joined["activity"].to_list() == sampled["sequence"].to_list()
    # The order of rows does not matter, because the events of a case are sorted by time.
    again = vp.read(events.sample(fraction=1, shuffle=True, seed=1))
    same = vp.read(sampled, user="user", sequence="sequence")
    first, second = (vp.Sequences(alphabet=STEPS).release(each, vp.Budget(8), seed=2) for each in (again, same))
    assert first.to_polars().equals(second.to_polars())
