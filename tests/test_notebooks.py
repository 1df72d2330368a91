"""Tests that the notebooks of the documentation run from the first cell to the last and print the saved output."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 250_000


def outputs(notebook):
    """Return the text output of each cell, which joins all outputs of the cell."""
    shown = []
    for cell in notebook.cells:
        texts = [out.get("text") or out.get("data", {}).get("text/plain", "") for out in cell.get("outputs", [])]
        shown.append("".join(texts))
    return shown


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_saved_output_of_a_notebook_is_up_to_date(path, data_dir, monkeypatch):
    """A run in a new kernel raises no error and prints the saved output."""
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install --group docs")
    pytest.importorskip("nbclient", reason="nbclient is not installed: pip install --group docs")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install --group docs")
    monkeypatch.setenv("VOXPOP_DATA", str(data_dir.resolve()))
    source = importlib.util.spec_from_file_location("run", FOLDER / "run.py")
    runner = importlib.util.module_from_spec(source)
    source.loader.exec_module(runner)
    assert outputs(runner.run(path)) == outputs(nbformat.read(path, as_version=4))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_saved_notebook_is_small_and_has_pictures(path):
    """Readers can view the results of a notebook on a code host without running it."""
    text = path.read_text()
    assert '"output_type": "error"' not in text
    assert '"image/png"' in text
    assert path.stat().st_size < MOST_BYTES
