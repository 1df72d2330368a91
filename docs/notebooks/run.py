"""Run the notebooks of the documentation again and keep what they print: `make notebook`. Needs the real data."""

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent


def run(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of a fresh run.

    Args:
        path: of the notebook, which is left as it is.

    Returns:
        The notebook; without times, so that equal results make equal files.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=300, record_timing=False, resources={"metadata": {"path": str(HERE)}})
    client.execute(env={**os.environ, "PYTHONPATH": str(HERE.parent.parent)})  # where benchmarks/ is
    for cell in notebook.cells:
        cell.metadata = {}
        if "outputs" in cell:  # progress is for whoever waits, and no two runs take the same time
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr" and not is_progress(each)]
    return notebook


def is_progress(output: nbformat.NotebookNode) -> bool:
    """Return whether an output is a line of progress."""
    return output.get("data", {}).get("text/plain", "").startswith(("reading: ", "releasing: "))


if __name__ == "__main__":
    for each in sorted(HERE.glob("*.ipynb")):
        nbformat.write(run(each), each)
        print(each.name)
