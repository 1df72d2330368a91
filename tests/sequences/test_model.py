"""Tests of a sequence model, including probabilities, draws, tables and files."""

import itertools
import json
import pickle
import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voxpop as vp
from support.look import read_engine
from voxpop.mechanisms.sequences.constants import LEAST_NOVELTY
from voxpop.privacy.secret import Secret
from voxpop.release.saving import checksum

pytestmark = pytest.mark.usefixtures("fixed_secrets")

PAGES = ["home", "news", "sport", "weather"]
SIGMAS = 7.0  # The absolute value of a normal deviate exceeds this with probability 2.6e-12.


def test_probabilities_after_every_context_add_up_to_one(model):
    """The test covers every node of the tree and every prefix of at most three symbols."""
    smoothed = model._sampler.smoothed
    assert smoothed.chances.min() >= 0
    assert smoothed.chances.sum(axis=1) == pytest.approx(1)
    for prefix in itertools.chain.from_iterable(itertools.product(PAGES, repeat=n) for n in range(4)):
        frame = model.next(prefix)
        assert frame["probability"].sum() == pytest.approx(1, abs=1e-9)
        assert frame["probability"].is_sorted(descending=True)
        assert frame["symbol"].null_count() == 1


def test_probabilities_of_all_sequences_add_up_to_one(visits):
    """The sum is over all sequences of at most three symbols. The empty sequence has probability 0."""
    short = vp.Sequences(max_length=3, max_gram=3, alphabet=PAGES).release(visits, vp.Budget(3), seed=2)
    every = itertools.chain.from_iterable(itertools.product(PAGES, repeat=n) for n in range(4))
    assert sum(short.probability(each) for each in every) == pytest.approx(1, abs=1e-9)
    assert short.probability([]) == 0
    assert short.probability(["home"] * 4) == 0
    assert short.probability(["nowhere"]) == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("novelty", LEAST_NOVELTY)
def test_probabilities_add_up_to_one_with_the_maximum_number_of_copies(visits, novelty):
    """The model counts only single symbols, and the latest symbol is excluded from copies."""
    sampler = vp.Sequences(max_length=3, max_gram=1, alphabet=PAGES).release(visits, vp.Budget(3), seed=2)._sampler
    sampler = replace(sampler, fit=replace(sampler.fit, novelty=novelty))
    every = itertools.chain.from_iterable(itertools.product(range(len(PAGES)), repeat=n) for n in range(1, 4))
    assert sum(sampler.probability(list(each)) for each in every) == pytest.approx(1, abs=1e-9)


@pytest.mark.jit
def test_frequencies_of_drawn_sequences_agree_with_probabilities(model):
    """The frequency of each short sequence agrees with its probability (false alarm below 1e-9)."""
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


def test_only_seeded_draws_are_repeatable(model):
    """The same seed and number give the same sequences. Draws without a seed differ."""
    assert model.sample(50, seed=1).equals(model.sample(50, seed=1))
    assert not model.sample(50).equals(model.sample(50))


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    """Return a folder with the saved model."""
    model.save(folder := tmp_path_factory.mktemp("saved") / "model")
    return folder


@pytest.mark.usefixtures("few_sessions_in_test")
def test_a_saved_result_is_loaded_unchanged(model, tmp_path):
    """A loaded model equals the saved model, even if the model was saved twice."""
    model = replace(model)  # This copy does not keep the few sessions for other tests.
    model.save(tmp_path / "model")
    model.save(tmp_path / "model")
    again = vp.load(tmp_path / "model", vp.SequenceModel)
    assert again == model
    assert again.sample(20, seed=1).equals(model.sample(20, seed=1))
    assert again.plan.to_dict() == model.plan.to_dict()
    assert "NOT PRIVATE" in str(again.guarantee)
    assert pickle.loads(pickle.dumps(again)) == model
    record = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    assert "6000" not in json.dumps(record)


def test_damage_is_detected(model, saved, tmp_path):
    """A changed file, a missing file and a folder with other files are rejected."""
    shutil.copytree(saved, tmp_path / "model")
    grams = tmp_path / "model" / "grams.parquet"
    grams.write_bytes(grams.read_bytes()[:-1] + b"x")
    with pytest.raises(vp.errors.ReleaseError, match="checksum"):
        vp.load(tmp_path / "model", vp.SequenceModel)
    grams.unlink()
    with pytest.raises(vp.errors.ReleaseError, match=r"grams\.parquet"):
        vp.load(tmp_path / "model", vp.SequenceModel)
    with pytest.raises(vp.errors.ReleaseError, match="contains no release"):
        vp.load(tmp_path, vp.SequenceModel)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(vp.errors.ReleaseError, match="not replaced"):
        model.save(tmp_path / "other")


@pytest.mark.parametrize("column", ["parent", "before", "scale", "counts"])
@pytest.mark.parametrize("value", [None, "x"])
def test_a_forged_table_is_rejected(saved, tmp_path, column, value):
    """The checksum is correct, but a column contains nulls or has another type."""
    folder = shutil.copytree(saved, tmp_path / "model")
    table = pq.read_table(folder / "grams.parquet")
    forged = pa.array([value] * len(table))
    pq.write_table(table.set_column(table.schema.names.index(column), column, forged), folder / "grams.parquet")
    record = json.loads((folder / "model.json").read_text())
    record["checksums"]["grams.parquet"] = checksum((folder / "grams.parquet").read_bytes())
    (folder / "model.json").write_text(json.dumps(record))
    with pytest.raises(vp.errors.ReleaseError, match="changed after it was saved"):
        vp.load(folder, vp.SequenceModel)


def test_wrong_arguments_are_rejected(model):
    """Numbers out of range, prefixes with unknown symbols, and a string instead of a sequence are rejected."""
    for n in (0, True, 1.5, "3"):
        with pytest.raises(vp.errors.InputError, match="whole number"):
            model.sample(n)
    with pytest.raises(vp.errors.InputError, match="place 2"):
        model.next(["home", "nowhere"])
    with pytest.raises(vp.errors.InputError, match="list of symbols"):
        model.probability("home")


def test_an_empty_release_is_reported(model):
    """Drawing from a model without a count above 0 raises an error."""
    empty = replace(model, tree=replace(model.tree, counts=np.minimum(model.tree.counts, 0)))
    for call in (lambda: empty.sample(1), empty.next):
        with pytest.raises(vp.errors.InputError, match="nothing to draw from"):
            call()


def test_the_query_for_next_symbols_has_intervals_on_request(model):
    """The probabilities are the same with and without intervals."""
    plain, sure = model.next(["home"]), model.next(["home"], level=0.9)
    assert plain.columns == ["symbol", "probability"]
    assert sure.columns == ["symbol", "probability", "error", "low", "high"]
    assert sure.select(plain.columns).equals(plain)


def test_queries_accept_whole_numbers_as_symbols():
    """`voxpop.read` converts whole numbers to strings, and so do queries."""
    rows = pl.DataFrame({"who": range(900), "pages": [[1, 2], [1], [2, 1]] * 300})
    corpus = read_engine(rows, user="who", sequence="pages")
    model = vp.Sequences(max_length=3, alphabet=["1", "2"]).release(corpus, vp.Budget(4), seed=1)
    assert model.funnel([1, 2]).equals(model.funnel(["1", "2"]))
    assert model.probability([1, 2]) == model.probability(["1", "2"]) > 0


def test_a_model_of_an_earlier_version_is_rejected(saved, tmp_path):
    """The counts in the earlier format have another meaning."""
    shutil.copytree(saved, tmp_path / "model")
    path = tmp_path / "model" / "model.json"
    path.write_text(path.read_text().replace('"format_version": 5', '"format_version": 4'))
    with pytest.raises(vp.errors.ReleaseError, match="format version 4"):
        vp.load(tmp_path / "model")


def test_releases_depend_only_on_the_secret(visits):
    """Releases with the same seed are equal, and releases without a seed differ."""
    sequences = vp.Sequences(max_length=5, max_gram=3, alphabet=PAGES)
    assert sequences.release(visits, vp.Budget(1), seed=5) == sequences.release(visits, vp.Budget(1), seed=5)
    assert sequences.release(visits, vp.Budget(1)) != sequences.release(visits, vp.Budget(1))
    assert Secret.fresh().private
