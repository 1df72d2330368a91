"""Processor time from the command line to a saved release of a small table, with warm kernels.

A process of its own for each run, without what only developers install: `python -m benchmarks.speed.startup PYTHON`.
That PYTHON belongs to an environment which holds voxpop and nothing else; `make wheels-tried` leaves one.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.support.common import table

RUNS = 7
ROWS = 2000
NEEDED = ("numpy", "scipy.special", "pyarrow.compute", "numba", "cyclopts", "jinja2")
COMMAND = "from voxpop.cli import console; console()"
OF_DEVELOPERS = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "OPENBLAS_NUM_THREADS")
OPTIONS = ["--user", "who", "--items", "what", "--epsilon", "1", "--delta", "1e-7"]


def main() -> None:
    """Measure, and write the table."""
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    with tempfile.TemporaryDirectory() as folder:
        rows = "".join(f"{who},{('tea', 'milk', 'oats')[who % 3]}\n" for who in range(ROWS))
        Path(folder, "small.csv").write_text(f"who,what\n{rows}")
        call = [python, "-c", COMMAND, "items", "small.csv", *OPTIONS, "-o"]
        seconds(call, folder)  # compiles and keeps the kernels
        released = [seconds(call, folder, str(run)) for run in range(RUNS)]
        helped = [seconds([python, "-c", COMMAND, "--help"], folder, None) for _ in range(RUNS)]
        imports = [
            [name, *figures([seconds([python, "-c", f"import {name}"], folder, None) for _ in range(RUNS)])]
            for name in NEEDED
        ]
    head = ["processor seconds", "least", "median", "most"]
    rows_of = [["voxpop items, 2,000 rows to a saved release", *figures(released)], ["voxpop --help", *figures(helped)]]
    rows_of += [[f"of it, import {name}", *numbers] for name, *numbers in imports]
    note = f"{RUNS} runs each, user and system time, with warm kernels. Imports overlap: each is measured alone."
    table("Start-up", [head, *rows_of], "startup", note)


def seconds(call: list[str], folder: str, output: str | None = "first") -> float:
    """Run a command; return the processor seconds that it took."""
    environment = {name: value for name, value in os.environ.items() if name not in OF_DEVELOPERS}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [*call, *([] if output is None else [output])],
        cwd=folder,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def figures(taken: list[float]) -> list[str]:
    """Return least, median and most."""
    return [f"{each:.2f}" for each in (min(taken), statistics.median(taken), max(taken))]


if __name__ == "__main__":
    main()
