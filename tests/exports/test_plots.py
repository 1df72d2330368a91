"""Tests of charts of profiles and counts, which are written as PNG and SVG."""

import sys

import polars as pl
import pytest

import voxpop as vp
from voxpop.errors import InputError

QUIET = vp.ReadOptions(progress=False)
TABLE = pl.DataFrame({"who": range(3000), "city": ["Delft", "Lund $x$", "a<b"] * 1000, "year": [2025, 2026] * 1500})


@pytest.fixture(scope="module")
def found():
    return vp.profile(TABLE, user="who", joint=[("city", "year")], budget=vp.Budget(2, 1e-7), options=QUIET, seed=1)


def test_charts_are_written_as_png_and_svg(found, tmp_path):
    """The suffix of the file determines its format, and the SVG file contains no date."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: make exports")
    found.plot("city", "year", path=tmp_path / "one.png")
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    for name in ("one.svg", "two.svg"):
        found.plot("city", "year", path=tmp_path / name, most=2)
    text = (tmp_path / "one.svg").read_text()
    assert "<svg" in text
    assert "Date" not in text or "dc:date" not in text
    words = vp.Items(max_items_per_user=1).release(vp.read(TABLE, user="who", items="city"), vp.Budget(2, 1e-7), seed=1)
    counts = words.count(vp.read(TABLE, user="who", items="city"), vp.Budget(2, 1e-7), seed=1)
    counts.plot(tmp_path / "counts.svg")
    assert (tmp_path / "counts.svg").stat().st_size > 1000


def test_wrong_names_and_missing_libraries_raise_errors(found, tmp_path, monkeypatch):
    """The cases are another suffix, an unknown combination of columns, and a missing matplotlib."""
    with pytest.raises(InputError, match=r"\.png or \.svg"):
        found.plot("city", "year", path=tmp_path / "chart.pdf")
    with pytest.raises(InputError, match="no such column"):
        found.plot("town", path=tmp_path / "chart.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match="pip install"):
        found.plot("city", "year", path=tmp_path / "chart.png")
