"""What a model does: chances that add up, draws that follow them, tables, files."""

import itertools
import json
import pickle

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voxpop as vp
from naive import sequences as naive
from voxpop.privacy.secret import Secret
from voxpop.release.record import checksum
from voxpop.sequences.synthesis import synthetic_sequences
from voxpop.sequences.table import gram_symbols

PAGES = ["home", "news", "sport", "weather"]
SIGMAS = 7.0  # a normal deviate passes this with probability 2.6e-12


def test_chances_of_every_node_add_up_to_one(model):
    """Entries and what falls back, at every node of the tree and for every prefix."""
    tree = model._sampler.tree
    symbols = np.arange(tree.width, dtype=np.int32)
    for node in range(tree.nodes):
        chances = tree.chances_of(np.full(tree.width, node, np.int32), symbols)
        assert chances.min() >= 0
        assert chances.sum() == pytest.approx(1, abs=1e-9)
    for prefix in itertools.chain.from_iterable(itertools.product(PAGES, repeat=n) for n in range(4)):
        frame = model.next(prefix)
        assert frame["probability"].sum() == pytest.approx(1, abs=1e-9)
        assert frame["probability"].is_sorted(descending=True)
        assert frame["symbol"].null_count() == 1


def test_probabilities_of_all_sequences_add_up_to_one(visits):
    """Over every sequence of at most three symbols, none empty."""
    short = vp.Sequences(max_length=3, max_gram=3, alphabet=PAGES).release(visits, vp.Budget(3), seed=2)
    every = itertools.chain.from_iterable(itertools.product(PAGES, repeat=n) for n in range(4))
    assert sum(short.probability(each) for each in every) == pytest.approx(1, abs=1e-9)
    assert short.probability([]) == 0
    assert short.probability(["home"] * 4) == 0
    assert short.probability(["nowhere"]) == 0


@pytest.mark.jit
def test_draws_follow_the_probabilities(model):
    """Each short sequence is drawn as often as the model says (false alarm below 1e-9)."""
    n = 200_000
    drawn = model.sample(n, seed=4)
    assert drawn.columns == ["user", "sequence"]
    counts = {tuple(row[0]): row[1] for row in drawn["sequence"].value_counts().rows()}
    for sequence in itertools.chain.from_iterable(itertools.product(PAGES, repeat=n) for n in (1, 2, 3, 4)):
        chance = model.probability(sequence)
        deviation = counts.get(sequence, 0) - n * chance
        assert abs(deviation) < SIGMAS * (n * chance) ** 0.5 + 3, sequence
    lengths = drawn["sequence"].list.len()
    assert lengths.min() >= 1
    assert lengths.max() <= 8


@pytest.mark.jit
def test_the_model_resembles_the_data(visits, model):
    """Numbers of users, beginnings and lengths come out of counts that mark none of them."""
    from voxpop.evaluate import as_sequences, private_length_distance, private_sequences

    truth = private_sequences(visits, PAGES)
    assert model.sequences == pytest.approx(6000, rel=0.1)
    first = dict(model.next().iter_rows())
    assert first["home"] == pytest.approx(0.6, abs=0.08)
    assert first[None] == 0
    symbols, sizes = model._sampler.draw(np.arange(20_000, dtype=np.uint64))
    assert private_length_distance(truth, as_sequences(symbols, sizes, 4), 8) < 0.1


def test_a_seed_repeats_the_draws_and_none_does_not(model):
    """The same seed draws the same sequences, whatever the number; no seed draws others."""
    assert model.sample(50, seed=1).equals(model.sample(50, seed=1))
    assert model.sample(20, seed=1).equals(model.sample(50, seed=1).head(20))
    assert not model.sample(50).equals(model.sample(50))


def test_the_table_says_what_was_released(model):
    """Grams in order of length; integer counts; estimates of children add up to no more than their parent."""
    frame = model.to_polars()
    assert frame.columns == ["gram", "ends", "count", "estimate", "scale"]
    assert frame.schema["count"] == pl.Int64
    assert frame["count"].min() >= 0
    lengths = frame["gram"].list.len() + frame["ends"]
    assert lengths.is_sorted()
    assert lengths.max() <= 4
    assert len(frame) == len(model)
    estimate = {(tuple(g), e): x for g, e, x in frame.select("gram", "ends", "estimate").iter_rows()}
    for (gram, ends), value in estimate.items():
        above = (gram, False) if ends else (gram[:-1], False)
        if above[0]:
            assert value <= estimate[above] + 1e-6


def test_save_and_load(model, tmp_path):
    """What is loaded is equal, also after replacing an earlier model, and its plan cannot run."""
    model.save(tmp_path / "model")
    model.save(tmp_path / "model")
    again = vp.SequenceModel.load(tmp_path / "model")
    assert again == model
    assert again.sample(20, seed=1).equals(model.sample(20, seed=1))
    assert again.plan.to_dict() == model.plan.to_dict()
    assert "NOT PRIVATE" in str(again.guarantee)
    assert pickle.loads(pickle.dumps(again)) == model
    record = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    assert "6000" not in json.dumps(record)


def test_damage_is_noticed(model, tmp_path):
    """A changed file, a missing file and a folder of something else are refused."""
    model.save(tmp_path / "model")
    grams = tmp_path / "model" / "grams.parquet"
    grams.write_bytes(grams.read_bytes()[:-1] + b"x")
    with pytest.raises(vp.errors.ReleaseError, match="checksum"):
        vp.SequenceModel.load(tmp_path / "model")
    grams.unlink()
    with pytest.raises(vp.errors.ReleaseError, match=r"grams\.parquet"):
        vp.SequenceModel.load(tmp_path / "model")
    with pytest.raises(vp.errors.ReleaseError, match="not a sequence model"):
        vp.SequenceModel.load(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(vp.errors.ReleaseError, match="not replaced"):
        model.save(tmp_path / "other")


@pytest.mark.parametrize("column", ["symbols", "ends", "count", "scale"])
@pytest.mark.parametrize("value", [None, "x"])
def test_a_forged_table_is_refused(model, tmp_path, column, value):
    """With the right checksum, but columns of nulls or of another type."""
    folder = tmp_path / "model"
    model.save(folder)
    table = pq.read_table(folder / "grams.parquet")
    forged = pa.array([value] * len(table))
    pq.write_table(table.set_column(table.schema.names.index(column), column, forged), folder / "grams.parquet")
    record = json.loads((folder / "model.json").read_text())
    record["checksums"]["grams.parquet"] = checksum((folder / "grams.parquet").read_bytes())
    (folder / "model.json").write_text(json.dumps(record))
    with pytest.raises(vp.errors.ReleaseError, match="changed after it was saved"):
        vp.SequenceModel.load(folder)


def test_wrong_calls_are_explained(model):
    """Numbers out of range and prefixes of strangers are refused; a string is no sequence."""
    for n in (0, True, 1.5, "3"):
        with pytest.raises(vp.errors.InputError, match="whole number"):
            model.sample(n)
    with pytest.raises(vp.errors.InputError, match="place 2 of the prefix"):
        model.next(["home", "nowhere"])
    with pytest.raises(vp.errors.InputError, match="list of symbols"):
        model.probability("home")


def test_nothing_released_is_said(visits):
    """With an alphabet nobody uses and little noise, there is nothing to draw from."""
    empty = vp.Sequences(max_gram=1, alphabet=["a", "b", "c"], leaves="threshold")
    model = empty.release(visits, vp.Budget(40), seed=1)
    assert len(model) == 0
    assert model.to_polars().is_empty()
    with pytest.raises(vp.errors.InputError, match="nothing to draw from"):
        model.sample(1)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("length", [2, 4, 7])
def test_synthesis_is_the_papers(visits, seed, length):
    """The same sequences, as often, as the paper's loops over the same whole counts."""
    sequences = vp.Sequences(max_length=length, max_gram=3, alphabet=PAGES, consistency="published")
    model = sequences.release(visits, vp.Budget(0.2 + seed), seed=seed)
    tree = model.tree
    symbols, sizes = gram_symbols(tree)
    starts = np.cumsum([0, *sizes])
    counts = {}
    for entry, value in enumerate(np.floor(tree.entry_totals() + 1e-9).astype(int).tolist()):
        gram = tuple(symbols[starts[entry] : starts[entry + 1]].tolist())
        counts[(*gram, naive.END) if tree.symbols[entry] == 4 else gram] = value
    columns, found = synthetic_sequences(tree, length)
    got = {tuple(x for x in row if x >= 0): n for row, n in zip(columns.tolist(), found.tolist(), strict=True)}
    key = lambda gram: (len(gram), tuple(4 if x == naive.END else x for x in gram))  # noqa: E731
    assert got == naive.synthesize(counts, length, key)
    frame = model.synthesize()
    assert frame["count"].sum() == sum(got.values())


def test_releases_depend_on_the_secret_alone(visits):
    """A seed repeats a release; without one two releases differ."""
    sequences = vp.Sequences(max_length=5, max_gram=3, alphabet=PAGES)
    assert sequences.release(visits, vp.Budget(1), seed=5) == sequences.release(visits, vp.Budget(1), seed=5)
    assert sequences.release(visits, vp.Budget(1)) != sequences.release(visits, vp.Budget(1))
    assert Secret.fresh().private


def test_balanced_falls_back_where_noise_drowns_the_counts():
    """A context whose counts say nothing new keeps the chances of its neighbour; one that does, gets its own."""
    from voxpop.sequences.tree import Rows, grow, plant

    one = lambda value: np.array([value], np.float64)  # noqa: E731
    whole = np.arange(3, dtype=np.int32)
    tree = plant(3, Rows(np.array([-1]), one(1), np.zeros(2, np.int64), whole[:2], np.array([9000, 9000])), True)
    rows = np.repeat([0, 1], 3)
    counts = np.array([3000, 3000, 3000, 6000, 2000, 1000])
    tree, _ = grow(
        tree,
        Rows(np.array([0, 1]), np.ones(2), rows, np.tile(whole, 2), counts),
    )
    deeper = Rows(np.array([3]), one(200.0), np.zeros(3, np.int64), whole, np.array([2100, 500, 800]))
    quiet = Rows(np.array([3]), one(1.0), np.zeros(3, np.int64), whole, np.array([2100, 500, 400]))
    noisy_tree, node = grow(tree, deeper)
    plain = noisy_tree.chances[noisy_tree.starts[noisy_tree.neighbour[node[0]]] :][:3]
    assert noisy_tree.chances[noisy_tree.starts[node[0]] :] == pytest.approx(plain)
    quiet_tree, node = grow(tree, quiet)
    assert quiet_tree.chances[quiet_tree.starts[node[0]] :] == pytest.approx(
        np.array([2100, 500, 400]) / 3000, rel=0.01
    )
