"""Run all benchmarks with old results, starting with the oldest. A repeated command continues an interrupted run.

Benchmarks that measure time run first, one at a time. All other benchmarks run two at a time. Logs are in
`out/benchmarks`.

    python -m benchmarks.all                 # `make bench-all`
    python -m benchmarks.all NAME ...        # benchmarks whose name contains one of these
    python -m benchmarks.all --check         # only list old results; `make bench-stale`

A benchmark is a module with a constant `BENCHMARK` (`support/benchmark.py`). A benchmark is skipped if its code and
its dependencies in voxpop have not changed since the commit of its results.
"""

import argparse
import importlib
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.support.age import changed_since
from benchmarks.support.benchmark import Benchmark, stamp_of
from benchmarks.support.common import OUT, RESULTS, ROOT

FOLDERS = ("papers", "comparisons", "speed", "spark")
LOGS = OUT / "benchmarks"
MOST_HOURS = 4
AT_A_TIME = 2
NAMED = re.compile(r"\b(\w+)\.md\b")
QUOTED = re.compile(r'"(\w+)"')


def benchmarks() -> list[Benchmark]:
    """Return the declarations of all benchmark modules."""
    found = []
    for path in sorted(path for folder in FOLDERS for path in (ROOT / "benchmarks" / folder).glob("*.py")):
        module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        found += [module.BENCHMARK] if hasattr(module, "BENCHMARK") else []
    return found


def age(benchmark: Benchmark, root: Path = ROOT) -> tuple[str, list[str]]:
    """Return the date of the oldest result, and the reasons why results are old (no reasons if all are current).

    Args:
        benchmark: The declaration of the benchmark.
        root: The folder of the repository.
    """
    dates, reasons, paths = [], [], benchmark.paths(root)
    for name in benchmark.results:
        path = root / "benchmarks" / "results" / f"{name}.md"
        found = stamp_of(path.read_text()) if path.exists() else None
        if found is None:
            dates.append("")
            reasons.append(f"{name}.md: {'no stamp' if path.exists() else 'not there'}")
            continue
        dates.append(str(found["date"]))
        changed = changed_since(root, str(found["commit"]), paths)
        unsaved = sorted(set(_within(found["uncommitted"], paths)))
        reasons += [f"{name}.md: {_listed(changed)} changed since {found['commit']:.9}"] if changed else []
        reasons += [f"{name}.md: measured with changes of {_listed(unsaved)} that no commit has"] if unsaved else []
    return min(dates), reasons


def _within(files: object, paths: list[str]) -> list[str]:
    assert isinstance(files, list)
    return [name for name in files if any(name == path or name.startswith(f"{path}/") for path in paths)]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def used(root: Path = ROOT) -> Counter[str]:
    """Count the references to each result file in pages, the README, pictures and claims."""
    pages = [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md"), root / "docs" / "trust.toml"]
    names = [name for page in pages if page.exists() for name in NAMED.findall(page.read_text())]
    draw = root / "docs" / "pictures" / "draw.py"
    names += QUOTED.findall(draw.read_text()) if draw.exists() else []
    files = {path.stem for path in (root / "benchmarks" / "results").glob("*.md")}
    return Counter(name for name in names if name in files)


def problems(found: list[Benchmark], root: Path = ROOT) -> list[str]:
    """Return errors in declarations and result files, except for their age."""
    declared = Counter(name for each in found for name in each.results)
    files = {path.name for path in (root / "benchmarks" / "results").iterdir()}
    uses = used(root)
    wrong = [f"{name}.md: {count} benchmarks declare it" for name, count in declared.items() if count > 1]
    wrong += [f"{name}: no benchmark declares it" for name in sorted(files - {f"{name}.md" for name in declared})]
    wrong += [f"{name}.md: nothing uses it" for name in declared if f"{name}.md" in files and not uses[name]]
    for each in found:
        paths = [path for path in each.paths(root) if not path.startswith(":")]
        wrong += [
            f"{each.module}: depends on {path}, which does not exist" for path in paths if not (root / path).exists()
        ]
    return wrong


def main() -> int:
    """List old results, run their benchmarks unless `--check` is given, and return the number of old or failed ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.all", description="run all benchmarks with old results")
    parser.add_argument("names", nargs="*", help="parts of names; all benchmarks if none is given")
    parser.add_argument("--check", action="store_true", help="only list old results")
    given = parser.parse_args()
    chosen = [each for each in benchmarks() if not given.names or any(name in each.module for name in given.names)]
    ages = {each: age(each) for each in chosen}
    old = [each for each in chosen if ages[each][1]]
    waiting = sorted(old, key=lambda each: (not each.alone, ages[each][0], each.minutes))
    for each in waiting:
        print(f"{each.module}, about {each.minutes:g} min", *ages[each][1], sep="\n    ")
    print(f"{len(waiting)} of {len(chosen)} benchmarks are old: about {hours(waiting):.1f} hours.", flush=True)
    if given.check:
        return len(waiting)
    failed = []
    for number, (each, (minutes, why)) in enumerate(zip(waiting, _run_all(waiting), strict=True), 1):
        left = waiting[number:]
        taken = f"{each.module}: {minutes:.1f} min, planned {each.minutes:g}"
        print(f"{taken}; {len(left)} left, {hours(left):.1f} hours {why}", flush=True)
        failed += [f"{each.module}: {why}"] if why else []
    print("\n".join(failed) or "All results are up to date.")
    return len(failed)


def _run_all(waiting: list[Benchmark]) -> Iterator[tuple[float, str]]:
    """Yield the result of each `timed_run`. Benchmarks that measure time run first."""
    alone = [each for each in waiting if each.alone]
    yield from map(timed_run, alone)
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        yield from threads.map(timed_run, waiting[len(alone) :])


def hours(waiting: list[Benchmark]) -> float:
    """Return the planned duration of benchmarks."""
    return sum(each.minutes / (1 if each.alone else AT_A_TIME) for each in waiting) / 60


def timed_run(benchmark: Benchmark) -> tuple[float, str]:
    """Return the duration of `run` in minutes, and its result."""
    begun = time.monotonic()
    why = run(benchmark)
    return (time.monotonic() - begun) / 60, why


def run(benchmark: Benchmark) -> str:
    """Run the commands of a benchmark, and return the reason for a failure, which is empty after a success."""
    python = ROOT / benchmark.environment / "bin" / "python"
    if not python.exists():
        return f"not run: {benchmark.environment} is not here; see the Makefile"
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{benchmark.module}.log"
    with log.open("w") as said:
        for arguments in benchmark.commands:
            command = [str(python), "-m", benchmark.module, *shlex.split(arguments)]
            done = subprocess.run(command, cwd=ROOT, check=False, stdout=said, stderr=subprocess.STDOUT)
            if done.returncode:
                return f"`python -m {benchmark.module} {arguments}` failed with {done.returncode}; see {log}"
    missing = [name for name in benchmark.results if not (RESULTS / f"{name}.md").exists()]
    return f"did not write {_listed(missing)}" if missing else ""


if __name__ == "__main__":
    sys.exit(min(main(), 125))
