"""The declaration of a benchmark, and the writer of result files with their stamps."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.support.age import changed_since, modules_of, source
from benchmarks.support.cells import Cells
from benchmarks.support.common import OUT, RESULTS, ROOT

PEERS = ROOT / "benchmarks" / ".venv" / "bin" / "python"
"""The environment of packages that cannot be installed next to Voxpop's."""
STAMP = "<!-- measured: "
FRESH = "no seeds: fresh randomness in each run"
PACKAGES = ("numpy", "scipy", "numba", "polars", "pyarrow", "duckdb", "scikit-learn", "pyspark", "flwr")
LOCAL = ("engine/local", "kernels", "privacy", "reading/tokenizers", "reading/words")
OF_SEQUENCES = ("engine/local/tree_walk", "kernels/sequences")
"""Parts of these folders that only sequences use. They do not affect the results of any other mechanism."""
SET_UNION = (*LOCAL, "mechanisms/set_union", "mechanisms/rounds", "privacy/weightings")
NGRAMS = (*SET_UNION, "mechanisms/ngrams")
SEQUENCES = (*LOCAL, "mechanisms/sequences")
HITTERS = ("kernels/tries", "mechanisms/heavy_hitters", "privacy")
ON_SPARK = (*NGRAMS, "engine/spark")
"""The parts of `src/voxpop` that decide the results of each mechanism, as values of `depends`."""
WORDS = (":!src/voxpop/mechanisms/*/describe.py", ":!src/voxpop/mechanisms/*/evaluate.py")
"""These patterns exclude modules that only format descriptions of plans, and comparisons of a release with its private
data."""
SOURCE = source(ROOT)
"""The commit is read when the process starts, because the repository may change before the results are written."""


@dataclass(frozen=True)
class Benchmark:
    """The declaration of a benchmark module, which is its constant `BENCHMARK`.

    Attributes:
        file: The `__file__` of the module.
        results: The names of its result files, without `.md`.
        depends: The packages and modules of `src/voxpop` that decide the results, such as `mechanisms/set_union`, and
            folders of `flower/`. Imported modules of `benchmarks` also count and are not listed.
        minutes: The duration of all its commands on two cores.
        seeds: The seeds of its runs.
        commands: The arguments of each of its commands, in order.
        environment: The folder of its Python environment.
        peers: The packages of the environment of peers that decide its results.
        timed: Whether results contain seconds or memory. It is always true in `benchmarks/speed` and
            `benchmarks/spark`.
    """

    file: str
    results: tuple[str, ...]
    depends: tuple[str, ...]
    minutes: float
    seeds: str = FRESH
    commands: tuple[str, ...] = ("",)
    environment: str = ".venv"
    peers: tuple[str, ...] = ()
    timed: bool = False

    @property
    def alone(self) -> bool:
        """Whether no other benchmark may run at the same time."""
        return self.timed or self.module.split(".")[1] in ("speed", "spark")

    @property
    def module(self) -> str:
        """The dotted name of the module."""
        return ".".join(Path(self.file).resolve().relative_to(ROOT).with_suffix("").parts)

    def table(self, title: str, rows: Sequence[Sequence[object]], name: str, note: str = "") -> None:
        """Print a table, starting with its head, and write it as Markdown with a stamp.

        Raises:
            ValueError: If `results` does not contain the name.
        """
        if name not in self.results:
            raise ValueError(f"{name} is not among the results of {self.module}; add it there.")
        cells = [[str(cell) for cell in row] for row in rows]
        widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
        lines = ["| " + " | ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in cells]
        lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        text = "\n".join([f"# {title}", "", *lines, "", note]).rstrip()
        print(text, flush=True)
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.md").write_text(f"{text}\n\n{STAMP}{json.dumps(stamp(self.seeds, self.peers))} -->\n")

    def cells(self) -> Cells:
        """Return the cells that earlier runs of the same code measured."""
        path = OUT / "cells" / f"{self.module}.csv"
        return Cells(path, str(SOURCE["commit"]), lambda commit: bool(changed_since(ROOT, commit, self.paths())))

    def paths(self, root: Path = ROOT) -> list[str]:
        """Return the files and folders that decide the results, relative to the root of the repository."""
        voxpop = [name if name.startswith("flower/") else f"src/voxpop/{name}" for name in self.depends]
        named = [path if (root / path).is_dir() else f"{path}.py" for path in voxpop]
        left_out = [*WORDS]
        if "mechanisms/sequences" not in self.depends:
            left_out += [f":!src/voxpop/{name}.py" for name in OF_SEQUENCES]
        return [*sorted(modules_of(root, self.module.replace(".", "/") + ".py")), *named, *left_out]


def stamp(seeds: str, peers: Sequence[str] = ()) -> dict[str, object]:
    """Return the commit, uncommitted changes, date, seeds, versions of Voxpop's and of peers' packages, and machine."""
    return {
        **SOURCE,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        "seeds": seeds,
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name))},
        **({"peers": peer_versions(peers)} if peers else {}),
        "machine": _machine(),
    }


def stamp_of(text: str) -> dict[str, object] | None:
    """Return the stamp of a result file, or None if it has no stamp."""
    _, found, rest = text.partition(STAMP)
    return json.loads(rest.partition(" -->")[0]) if found else None


def peer_versions(packages: Sequence[str]) -> dict[str, str]:
    """Return the versions of packages in the environment of peers.

    Raises:
        subprocess.CalledProcessError: If a package is not installed there.
    """
    program = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    found = subprocess.run([str(PEERS), "-c", program, *packages], check=True, capture_output=True, text=True)
    return dict(zip(packages, found.stdout.split(), strict=True))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _machine() -> str:
    """Return the processor, usable cores, memory, system and load."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if sys.platform == "linux" else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f"load {os.getloadavg()[2]:.1f}"
    return ", ".join([*names[:1], f"{cores} cores", f"{memory:.0f} GiB", platform.system(), load])
