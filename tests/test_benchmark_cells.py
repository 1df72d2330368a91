"""Long benchmarks go on where they were: a cell is measured once, and anew only where it is asked for."""

import pytest
from benchmarks.support import cells


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Keep results in an empty folder."""
    monkeypatch.setattr(cells, "RESULTS", tmp_path)
    return tmp_path / "some_cells.csv"


def test_a_cell_is_measured_once_and_outlives_the_run(kept):
    """In the same run and in the next."""
    calls = []

    def measure():
        calls.append(1)
        return [3, 0.25]

    first = cells.Cells("some")
    assert first.get(["a", "limit 1"], measure) == first.get(["a", "limit 1"], measure) == [3.0, 0.25]
    assert cells.Cells("some").get(["a", "limit 1"], measure) == [3.0, 0.25]
    assert len(calls) == 1
    assert kept.read_text() == "a | limit 1,3 0.25\n"


def test_cells_asked_for_are_measured_again(kept):
    """Those whose key has the word as a whole part, and no others."""
    first = cells.Cells("some")
    first.get(["default", "limit 1"], lambda: [1])
    first.get(["not default", "limit 1"], lambda: [2])
    second = cells.Cells("some", ["default"])
    assert second.get(["default", "limit 1"], lambda: [10]) == [10.0]
    assert second.get(["not default", "limit 1"], lambda: [20]) == [2.0]


def test_an_interrupted_run_keeps_what_it_had(kept):
    """A cell that fails leaves the others."""
    first = cells.Cells("some")
    first.get(["a"], lambda: [1])
    with pytest.raises(ZeroDivisionError):
        first.get(["b"], lambda: [1 / 0])
    assert cells.Cells("some").get(["a"], lambda: [9]) == [1.0]
