"""Tests of `voxpop ask`, which queries a saved model from a shell."""

import shutil
from typing import get_args

import polars as pl
import pytest

import voxpop as vp
from voxpop.cli.saved import Question

pytestmark = pytest.mark.jit
LETTERS = ["a", "b", "c"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return a saved model of contexts and its folder. One in three users has a sequence that begins with b."""
    pages = [["a", "b"], ["a"], ["b", "a", "c", "c"]] * 400
    corpus = vp.read(pl.DataFrame({"who": range(1200), "pages": pages}), user="who", sequence="pages")
    made = vp.Sequences(max_length=5, max_gram=3, alphabet=LETTERS).release(corpus, vp.Budget(4), seed=1)
    folder = tmp_path_factory.mktemp("saved") / "model"
    made.save(folder)
    return made, folder


@pytest.fixture
def model(saved, tmp_path):
    """Copy the saved model into the folder of the commands."""
    shutil.copytree(saved[1], tmp_path / "model")
    return saved[0]


@pytest.mark.parametrize("question", get_args(Question))
def test_every_query_returns_the_answer_of_the_model(voxpop, model, question):
    """The JSON output contains the rows of the method with the same name, and the confidence level."""
    symbols, within = ["a", "c"], 2
    options = {
        "next": (["--symbols", "a,c"], lambda: model.next(symbols, 0.8).rename({"probability": "share"})),
        "paths": (["--length", 2, "--first", 3], lambda: model.paths(2, 3, 0.8)),
        "funnel": (["--symbols", "a,c", "--within", within], lambda: model.funnel(symbols, within, 0.8)),
        "lengths": ([], lambda: model.lengths(0.8)),
        "starts": ([], lambda: model.starting(0.8)),
        "ends": ([], lambda: model.ending(0.8)),
        "transitions": ([], lambda: model.transitions(0.8)),
    }
    given, answer = options[question]
    content = voxpop("ask", "model", question, *given, "--level", 0.8, "--json").json
    assert content == {"question": question, "level": 0.8, "answer": answer().to_dicts()}
    assert content["answer"]


def test_shares_are_printed_with_interval_and_subject(voxpop, model):
    """Each line shows a share, its interval, and the symbols that the share describes.

    `(end)` marks the end of a sequence, and `--first` limits the number of lines.
    """
    code, out, err = voxpop("ask", "model", "starts")
    assert (code, err) == (0, "")
    first = model.starting().row(0, named=True)
    shown = f"{first['share']:.4f}   ({first['low']:.4f} to {first['high']:.4f})   {first['symbol']}"
    assert out.splitlines()[0].strip() == shown
    assert len(out.splitlines()) == 3
    assert "(end)" in voxpop("ask", "model", "next", "--symbols", "a,b").out
    commonest = " ".join(model.paths(2)["path"][0])
    assert voxpop("ask", "model", "paths", "--length", 2).out.splitlines()[0].endswith(f"   {commonest}")
    assert "a -> b" in voxpop("ask", "model", "transitions").out
    assert len(voxpop("ask", "model", "transitions", "--first", 4).out.splitlines()) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["model", "lengths", "--symbols", "a"], "--symbols is an option of `next` and `funnel`"),
        (["model", "next", "--symbols", "nowhere"], "not in the alphabet"),
        (["model", "funnel"], "at least one step"),
        (["model", "paths", "--level", "1"], "level"),
        (["nothing", "paths"], "nothing"),
        (["model", "weather"], "weather"),
    ],
)
def test_wrong_queries_cause_one_line_errors(voxpop, model, arguments, words):
    """The cases are misplaced or unknown symbols, missing steps, a wrong level, a missing model or an unknown query."""
    assert words in voxpop("ask", *arguments).complaint


def test_export_rejects_the_folder_of_a_model(voxpop, model):
    """The message reports that the folder contains a model."""
    assert (
        "model contains no release: it contains a sequence model." in voxpop("export", "model", "-o", "m.csv").complaint
    )
