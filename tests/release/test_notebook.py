"""Tests that notebooks show plans like `print`, results with their guarantee, and no private data."""

import io
import re
import sys
import types
from html.parser import HTMLParser

import polars as pl
import pytest

import voxpop as vp
from voxpop.files import progress
from voxpop.privacy.budget import printable, words_first
from voxpop.release.result import StoredPlan

BUDGET = vp.Budget(4, 1e-7)
HOSTILE = ["<script>alert(1)</script>", "tea & milk", "\u202eevil", " ", "", "'", "42"]


def corpus(**columns):
    """Return a corpus of 3,000 users."""
    table = pl.DataFrame({"who": range(3000), "what": ["thank you", "see you", "thank you very much"] * 1000})
    return vp.read(table, user="who", **(columns or {"text": "what"}))


PLANS = {
    "adaptive": lambda: vp.Items().plan(BUDGET),
    "classic": lambda: vp.papers.SetUnion(100, "weighted", accounting="joint").plan(BUDGET),
    "ngrams": lambda: vp.NGrams(max_length=3).plan(BUDGET),
    "hitters": lambda: vp.HeavyHitters().plan(BUDGET),
    "sequences": lambda: vp.Sequences(alphabet=["a", "b"]).plan(vp.Budget(1)),
    "finding": lambda: vp.Sequences(alphabet="find").plan(BUDGET),
    "stored": lambda: StoredPlan({"mechanism": "x", "sigma": 1.5}),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_has_the_same_text_in_a_notebook_and_in_print(name):
    """The output of a cell, `repr(plan)` and `print(plan)` have the same text, without a memory address."""
    plan = PLANS[name]()
    assert repr(plan) == str(plan)
    assert "object at 0x" not in repr(plan)
    assert text_of(plan._repr_html_()) == str(plan)


def test_counts_are_displayed_with_their_guarantee():
    """The output contains the largest counts and the total guarantee of the counts and the release."""
    posts = corpus()
    words = vp.Items().release(posts, BUDGET)
    counts = words.count(posts, vp.Budget(4, 1e-7))
    assert repr(counts.plan) == str(counts.plan)
    shown = counts._repr_html_()
    assert f"{counts[('you',)]:,}" in shown
    assert str(counts.total) in text_of(shown)
    assert re.search("Epsilon [0-9.]+ is large", shown)


def test_a_ranking_shows_its_order():
    """The output contains the places, the grams, and the total guarantee of the ranking and the release."""
    posts = corpus()
    words = vp.Items().release(posts, BUDGET)
    ranking = words.top(posts, vp.Budget(1, 1e-7), k=2)
    assert repr(ranking.plan) == str(ranking.plan)
    said = text_of(ranking._repr_html_())
    assert "1you" in said
    assert str(ranking.total) in said


def test_a_corpus_displays_no_private_data():
    """Two corpora with different words and numbers of users are displayed in the same way."""
    few = vp.read(pl.DataFrame({"who": [1], "what": ["secret"]}), user="who", text="what")
    assert few._repr_html_() == corpus()._repr_html_()
    assert "secret" not in few._repr_html_()
    assert not re.search(r"\d", text_of(few._repr_html_()))


def test_a_release_is_displayed_safely_and_words_first():
    """Markup is escaped, blanks are in quotes, and the output contains the guarantee and a caution about epsilon."""
    table = pl.DataFrame({"who": range(7000), "what": HOSTILE * 1000})
    items = vp.Items().release(vp.read(table, user="who", items="what"), vp.Budget(8, 1e-7))
    shown = items._repr_html_()
    assert "<script" not in shown
    assert "\u202e" not in shown
    said = text_of(shown)
    assert said.index("tea & milk") < said.index("42") < said.index("\\u202eevil")
    assert "' '" in said
    assert "Epsilon 8 is large" in said
    assert str(items.guarantee) in said


def test_a_release_of_many_phrases_shows_some_of_each_length():
    """The output contains, for example, phrases of three words."""
    said = ["thank you very much", "see you tomorrow", "good morning to all"] * 1000
    posts = vp.read(pl.DataFrame({"who": range(3000), "what": said}), user="who", text="what")
    phrases = vp.NGrams(max_length=3).release(posts, BUDGET)
    assert "thank you very" in phrases
    assert re.search(r" · \w+ \w+ \w+ ", text_of(phrases._repr_html_()))


def test_a_model_shows_noisy_counts():
    """The output contains the first grams of the model, with a dot for the end of a sequence."""
    visits = pl.DataFrame({"who": range(2000), "pages": [["home", "news"], ["home"]] * 1000})
    model = vp.Sequences(alphabet=["home", "news"], max_length=4).release(
        vp.read(visits, user="who", sequence="pages"), vp.Budget(2)
    )
    said = text_of(model._repr_html_())
    assert "home" in said
    assert "A dot is the end of a sequence" in said


def test_a_guarantee_is_displayed_with_its_meaning():
    """The output contains the epsilon and delta, their meaning, and cautions."""
    said = text_of(vp.Guarantee(50, 1e-2)._repr_html_())
    assert "(50, 0.01)-DP" in said
    assert "Adding or removing all rows of one user" in said
    assert "gives hardly any protection" in said
    assert "NOT PRIVATE" in text_of(vp.Guarantee(1, 1e-7, private=False)._repr_html_())


def test_grams_are_printed_safely_and_words_first():
    """Control characters are escaped, and blanks are quoted.

    Letters precede digits, and digits precede other characters.
    """
    assert printable(("a\x1b[31m", " ", "")) == "a\\x1b[31m ' ' ''"
    assert words_first([("'",), ("1",), ("a",), ("é",)]) == [("a",), ("é",), ("1",), ("'",)]


class Notebook(io.StringIO):
    """The standard error of a notebook, which is not a terminal."""


def in_notebook(monkeypatch):
    """Simulate the kernel of a notebook, and return the list of displayed lines."""
    shell, shown = type("ZMQInteractiveShell", (), {}), []
    handle = types.SimpleNamespace(update=lambda data, raw: shown.append(data["text/plain"]))
    displays = types.SimpleNamespace(display=lambda data, raw, display_id: handle)
    monkeypatch.setitem(sys.modules, "ipykernel.zmqshell", types.SimpleNamespace(ZMQInteractiveShell=shell))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=shell, display=displays))
    monkeypatch.setitem(sys.modules, "IPython.display", displays)
    return shown


def shown_of(release, monkeypatch):
    """Return the last progress line that a release displays in a notebook, without its seconds."""
    sink = Notebook()
    with monkeypatch.context() as patch:
        patch.setattr(progress, "_PATIENCE", 0.0)
        patch.setattr(sys, "stderr", sink)
        shown = in_notebook(patch)
        release()
    assert sink.getvalue() == ""  # Notebooks show standard error in red.
    assert shown[-1].endswith(" s")
    return shown[-1].rsplit(", ", 1)[0]


def test_a_release_shows_its_progress_in_a_notebook(monkeypatch):
    """In a notebook, a release displays a line with the number of rounds or lengths. Elsewhere, it displays nothing."""
    posts, sink = corpus(), Notebook()
    monkeypatch.setattr(sys, "stderr", sink)
    vp.Items().release(posts, BUDGET)
    assert sink.getvalue() == ""
    assert re.fullmatch(r"releasing: .+ rounds", shown_of(lambda: vp.Items().release(posts, BUDGET), monkeypatch))
    phrases = vp.NGrams(max_length=2)
    assert re.fullmatch(r"releasing: .+ lengths", shown_of(lambda: phrases.release(posts, BUDGET), monkeypatch))


def test_heavy_hitters_show_their_rounds(monkeypatch):
    """The progress line of heavy hitters counts the executed rounds. The plan contains the maximum number."""
    held = vp.read(pl.DataFrame({"who": range(3000), "what": ["sun", "star", "moon"] * 1000}), user="who", items="what")
    plan = vp.HeavyHitters().plan(BUDGET)
    line = shown_of(lambda: plan.release(held), monkeypatch)
    assert re.fullmatch(r"releasing: .+ rounds", line)


@pytest.mark.parametrize("lengths", [2, 3])
def test_sequences_show_their_lengths(monkeypatch, lengths):
    """The progress line of sequences counts the lengths of grams."""
    visits = vp.read(pl.DataFrame({"who": range(3000), "what": [["a", "b", "a"]] * 3000}), user="who", sequence="what")
    mechanism = vp.Sequences(alphabet=["a", "b"], max_length=4, max_gram=lengths)
    line = shown_of(lambda: mechanism.release(visits, vp.Budget(4)), monkeypatch)
    assert re.fullmatch(r"releasing: .+ lengths", line)


def test_short_computations_display_no_progress(monkeypatch):
    """Computations that take less than half a second display no progress, so short cells have no extra output."""
    sink = Notebook()
    monkeypatch.setattr(sys, "stderr", sink)
    shown = in_notebook(monkeypatch)
    assert list(progress.track(range(3), "reading", lambda _: 1, None)) == [0, 1, 2]
    assert (sink.getvalue(), shown) == ("", [])


CELLS = """
import polars as pl
import voxpop as vp
from voxpop.files import progress
progress._PATIENCE = 0.0
visits = vp.read(pl.DataFrame({"who": range(2000), "pages": [["home", "news"]] * 2000}), user="who", sequence="pages")
---
model = vp.Sequences(alphabet=["home", "news"], max_length=4).release(visits, vp.Budget(4))
model.plan
---
model.report()
---
vp.NGrams(max_length=2).release(visits, vp.Budget(4, 1e-7)).report()
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning", "ignore::ResourceWarning")
def test_a_notebook_shows_the_report():
    """A real notebook has one updated line of progress, nothing on standard error, and plans and reports as HTML.

    The plan has a fixed-width font, and the reports contain their charts.
    """
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install --group docs")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install --group docs")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install --group docs")
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS.split("---\n")]
    ran = nbclient.NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=300).execute()
    outputs = [each for cell in ran.cells for each in cell.outputs]
    assert not any(each.get("name") == "stderr" for each in outputs)
    lines = [each["data"]["text/plain"] for each in outputs if each["output_type"] == "display_data"]
    assert {line.partition(":")[0] for line in lines[1:]} == {"releasing"}
    assert re.fullmatch(r"reading: about 2,000 rows, \d+\.\d s", lines[0])
    plan, model, phrases = (each["data"]["text/html"] for each in outputs if each["output_type"] == "execute_result")
    assert "font-family:monospace" in plan
    assert "chart-starts" in model
    assert "chart-lengths" in phrases
    assert "chart-costs" in phrases
    assert all(each.startswith("<iframe") and "allow-scripts" in each for each in (model, phrases))


class Text(HTMLParser):
    """Collect the text of a piece of HTML."""

    def __init__(self, page):
        super().__init__()
        self.parts = []
        self.feed(page)

    def handle_data(self, data):
        self.parts.append(data)


def text_of(page):
    return "".join(Text(page).parts)
