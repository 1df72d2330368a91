"""Tests that every picture of the documentation can be drawn from the results and agrees with its alternative text."""

import importlib.util
import re
from pathlib import Path

import pytest
from scipy.special import ndtr

pytest.importorskip("matplotlib", reason="matplotlib is not installed: make docs")

DOCS = Path(__file__).resolve().parents[1] / "docs"
SPEC = importlib.util.spec_from_file_location("draw", DOCS / "pictures" / "draw.py")
draw = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(draw)
SHOWN = {
    "hitters.svg": "guides/federated.md",
    "weightings.svg": "comparison.md",
    "epsilon.svg": "guides/phrases.md",
}


@pytest.fixture(autouse=True)
def style():
    """Draw without a window, and close all figures after the test."""
    draw.mpl.use("Agg")
    yield
    draw.plt.close("all")


@pytest.fixture
def few_points(monkeypatch):
    """Draw curves through a twentieth of their points, because each point is a search for a number of users."""
    monkeypatch.setattr(draw, "ndtr", lambda quantiles: draw.np.atleast_1d(ndtr(quantiles))[::20].squeeze())


@pytest.mark.parametrize("name", draw.PICTURES)
def test_every_picture_is_drawn(name, few_points):
    """Pictures are drawn from the current results, so a renamed row in a result file would raise an error."""
    assert draw.PICTURES[name]().axes


@pytest.mark.parametrize("name", SHOWN)
def test_the_alternative_text_of_a_picture_contains_its_numbers(name):
    """Screen readers read the alternative text, so it contains at least three of the numbers in the picture."""
    page = (DOCS / SHOWN[name]).read_text()
    [said] = re.findall(rf"!\[([^\]]*)\]\([^)]*{name}\)", page)
    drawn = [text.get_text() for axes in draw.PICTURES[name]().axes for text in axes.texts]
    numbers = {each for each in drawn if re.fullmatch(r"[\d,]{2,}", each)}
    told = set(re.findall(r"\d[\d,]*\d|\d", said))
    assert len(numbers & told) >= min(len(numbers), 3)
    assert {each for each in told if "," in each} - {"500,000"} <= numbers  # The picture omits the collection's size.
    assert len(numbers) > 3
