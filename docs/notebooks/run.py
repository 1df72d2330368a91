"""Run the notebooks of the documentation again and save their outputs: `make notebook`. It needs the real data."""

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent


def run(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of a fresh run.

    Args:
        path: path of the notebook, which is not changed.

    Returns:
        The notebook, without times, so that equal results give equal files.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=300, record_timing=False, resources={"metadata": {"path": str(HERE)}})
    client.execute(env={**os.environ, "PYTHONPATH": str(HERE.parent.parent)})  # the folder of benchmarks/
    for cell in notebook.cells:
        cell.metadata = {}
        if "outputs" in cell:  # progress is not a result, and it differs between runs
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr" and not is_progress(each)]
    return notebook


def is_progress(output: nbformat.NotebookNode) -> bool:
    """Return whether an output is a line of progress."""
    return output.get("data", {}).get("text/plain", "").startswith(("reading: ", "releasing: "))


if __name__ == "__main__":
    for each in sorted(HERE.glob("*.ipynb")):
        nbformat.write(run(each), each)
        print(each.name)
