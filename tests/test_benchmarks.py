"""Tests of benchmark results, including declarations, stamps and interrupted benchmarks."""

import subprocess
import sys
import tomllib
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from threading import Barrier

import pytest
from benchmarks import all as runner
from benchmarks.speed.first_release import ROLES
from benchmarks.support import benchmark as support
from benchmarks.support.age import git, modules_of, source
from benchmarks.support.benchmark import STAMP, Benchmark, stamp_of
from benchmarks.support.cells import Cells

BENCHMARKS = runner.benchmarks()
MODULE = "from benchmarks.baselines.other import number\nfrom benchmarks.support.common import SIZE\n"
FILES = {
    "src/voxpop/kernels/weigh.py": '"""Kernels."""\n\nUNIT = 1\n',
    "src/voxpop/privacy.py": "DELTA = 2\n",
    "benchmarks/speed/some.py": MODULE,
    "benchmarks/baselines/other.py": "number = 3\n",
    "benchmarks/support/common.py": "SIZE = 4\n",
    "benchmarks/results/some.md": "",
    "docs/page.md": "See `benchmarks/results/some.md`.\n",
}


@dataclass
class Repository:
    """A synthetic repository with one benchmark and its current result."""

    root: object
    declared: Benchmark

    def commit(self, **changes: str) -> None:
        """Write files and commit all changes."""
        for name, text in changes.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for command in (["add", "-A"], ["commit", "-q", "-m", "a change"]):
            subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *command], cwd=self.root, check=True)

    def measure(self) -> None:
        """Write a result with the stamp of the current commit."""
        text = f"| a |\n\n{STAMP}" + support.json.dumps({**source(self.root), "date": "2026-01-01"}) + " -->\n"
        (self.root / "benchmarks/results/some.md").write_text(text)

    def reasons(self) -> list[str]:
        """Return the reasons why the result is old."""
        return runner.age(self.declared, self.root)[1]


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return a repository with one result, measured at its commit."""
    monkeypatch.setattr(support, "ROOT", tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    made = Repository(
        tmp_path, Benchmark(str(tmp_path / "benchmarks/speed/some.py"), ("some",), ("kernels", "privacy"), 1)
    )
    made.commit(**FILES)
    made.measure()
    return made


def test_results_remain_up_to_date_if_no_dependency_changes(repository):
    """Changes to comments, docstrings, descriptions of plans, pages and `support` do not make a result old."""
    assert repository.reasons() == []
    repository.commit(
        **{
            "src/voxpop/kernels/weigh.py": '"""Other words."""\n\nUNIT = 1  # and a comment\n',
            "src/voxpop/mechanisms/set_union/describe.py": "TEXT = 1\n",
            "benchmarks/support/common.py": "SIZE = 5\n",
            "docs/page.md": "Nothing.\n",
        }
    )
    assert repository.reasons() == []


def test_results_remain_up_to_date_if_code_moves_between_dependencies(repository):
    """Moved code does not make a result old if its new file is also a dependency.

    However, a change of the moved code makes the result old.
    """
    function = "def half(number: int) -> float:\n    return number / 2\n"
    repository.commit(**{"src/voxpop/privacy.py": "DELTA = 2\nOTHER = 7\n" + function})
    repository.measure()
    moved = "from voxpop.elsewhere import Whole\n" + function.replace(": int", ': "Whole"')
    repository.commit(**{"src/voxpop/privacy.py": "DELTA = 2\n", "src/voxpop/kernels/half.py": moved})
    assert repository.reasons() == []
    repository.commit(**{"src/voxpop/kernels/half.py": moved.replace("/ 2", "/ 3")})
    assert "kernels/half.py changed" in repository.reasons()[0]


def test_methods_are_compared_separately(repository):
    """A renamed method and a description of a plan do not make a result old, but changed fields and changed code do."""
    code = "class Plan:\n    size: int\n\n    def half(self):\n        return self.size / 2\n"
    repository.commit(**{"src/voxpop/privacy.py": code})
    repository.measure()
    renamed = code.replace("def half", "def middle") + "\n    def to_dict(self):\n        return {'size': self.size}\n"
    repository.commit(**{"src/voxpop/privacy.py": renamed})
    assert repository.reasons() == []
    for changed in (renamed.replace("/ 2", "/ 3"), renamed.replace("size: int", "size: float = 1.0")):
        repository.commit(**{"src/voxpop/privacy.py": changed})
        assert "privacy.py changed" in repository.reasons()[0]


def test_results_remain_up_to_date_if_a_function_is_marked_as_proved(repository):
    """The decorator `proved` returns its function unchanged, so it does not make a result old. Other decorators do."""
    code = "def half(number):\n    return number / 2\n"
    repository.commit(**{"src/voxpop/privacy.py": code})
    repository.measure()
    repository.commit(**{"src/voxpop/privacy.py": '@proved("adaptive.md#proof")\n' + code})
    assert repository.reasons() == []
    repository.commit(**{"src/voxpop/privacy.py": "@lru_cache(maxsize=64)\n" + code})
    assert "privacy.py changed" in repository.reasons()[0]


def test_results_remain_up_to_date_if_an_error_message_changes(repository):
    """Changed error messages, annotations and pages do not make a result old.

    However, a changed condition for an error makes a result old.
    """
    code = "def half(number):\n    if number > 5:\n        raise ValueError('use at most 5')\n    return number\n"
    repository.commit(**{"src/voxpop/privacy.py": code})
    repository.measure()
    other = code.replace("use at most 5", "the number is too large")
    repository.commit(**{"src/voxpop/privacy.py": other, "src/voxpop/kernels/README.md": "Read this."})
    assert repository.reasons() == []
    typed = "LIMIT: int = 5\n" + code
    repository.commit(**{"src/voxpop/privacy.py": typed})
    repository.measure()
    repository.commit(**{"src/voxpop/privacy.py": typed.replace(": int", "")})
    assert repository.reasons() == []
    repository.commit(**{"src/voxpop/privacy.py": code.replace("number > 5", "number > 6")})
    assert "privacy.py changed" in repository.reasons()[0]


def test_results_remain_up_to_date_if_a_sentence_in_a_string_changes(repository):
    """A line of at least six words with a full stop is text for readers.

    Shorter strings, placeholders, schemas, lists of words and scripts are code.
    """
    code = "NEXT = f'The value {LIMIT} is too small. Choose a larger value.'\nPURPOSE = 'noise of round 0'\n"
    code += "SCHEMA = 'word binary, level int, weight bigint'\nTAGS = 'a abbr b bdi big cite'\n"
    code += "SCRIPT = 'from it import words\\nprint(words(1.). + 2, 3, 4, 5)'\n"
    repository.commit(**{"src/voxpop/privacy.py": code})
    repository.measure()
    repository.commit(**{"src/voxpop/privacy.py": code.replace("Choose a", "Use a much")})
    assert repository.reasons() == []
    changes = [
        ("round 0", "round 1"),
        ("level int", "level bigint"),
        ("{LIMIT}", "{SIZE}"),
        ("big", "i"),
        ("2, 3", "2, 4"),
    ]
    for old, new in changes:
        repository.commit(**{"src/voxpop/privacy.py": code.replace(old, new)})
        assert "privacy.py changed" in repository.reasons()[0]


def test_code_that_only_sequences_use_affects_no_other_result(repository):
    """Some files for sequences are in folders that all mechanisms share, but no other results depend on them."""
    repository.commit(**{"src/voxpop/kernels/sequences.py": "STEPS = 1\n"})
    assert repository.reasons() == []
    declared = Benchmark(repository.declared.file, ("some",), ("kernels", "mechanisms/sequences"), 1)
    repository.commit(**{"src/voxpop/mechanisms/sequences/plan.py": ""})
    assert "kernels/sequences.py changed" in runner.age(declared, repository.root)[1][0]


@pytest.mark.parametrize(
    "path",
    [
        "src/voxpop/kernels/weigh.py",
        "src/voxpop/kernels/new.py",
        "src/voxpop/privacy.py",
        "benchmarks/speed/some.py",
        "benchmarks/baselines/other.py",
    ],
)
def test_a_changed_dependency_makes_a_result_old(repository, path):
    """Dependencies are packages, modules, the benchmark and the benchmark modules that it imports."""
    (repository.root / path).write_text(MODULE + "CHANGED = 9\n")
    assert repository.reasons() == [f"some.md: {path} changed since {source(repository.root)['commit']:.9}"]
    before = source(repository.root)["commit"]
    repository.commit()
    assert repository.reasons() == [f"some.md: {path} changed since {before:.9}"]
    repository.measure()
    assert repository.reasons() == []


def test_a_result_of_uncommitted_code_is_old(repository):
    """A result of uncommitted code is old even after the code is committed.

    Uncommitted changes to other files do not make it old.
    """
    (repository.root / "src/voxpop/unrelated.py").write_text("")
    repository.measure()
    assert repository.reasons() == []
    (repository.root / "src/voxpop/privacy.py").write_text("DELTA = 9\n")
    repository.measure()
    repository.commit()
    [changed, unsaved] = repository.reasons()
    assert "src/voxpop/privacy.py" in changed
    assert "no commit has" in unsaved


def test_a_result_with_a_missing_stamp_or_an_unknown_commit_is_old(repository):
    """A result is old if its file is missing, has no stamp, or has a stamp with an unknown commit."""
    path = repository.root / "benchmarks/results/some.md"
    path.write_text(path.read_text().replace(str(source(repository.root)["commit"]), "0" * 40))
    assert "not in this repository" in repository.reasons()[0]
    path.write_text("| a |\n")
    assert repository.reasons() == ["some.md: no stamp"]
    path.unlink()
    assert repository.reasons() == ["some.md: not there"]


def test_problems_of_declarations_are_reported(repository):
    """The runner reports duplicate and missing declarations, unused results and missing modules."""
    declared = repository.declared
    assert runner.problems([declared], repository.root) == []
    assert runner.problems([declared, declared], repository.root) == ["some.md: 2 benchmarks declare it"]
    assert runner.problems([], repository.root) == ["some.md: no benchmark declares it"]
    repository.commit(**{"docs/page.md": "Nothing.\n"})
    assert runner.problems([declared], repository.root) == ["some.md: nothing uses it"]
    gone = Benchmark(declared.file, (), ("gone",), 1)
    assert runner.problems([gone], repository.root)[-1].endswith("depends on src/voxpop/gone.py, which does not exist")


def test_dependencies_include_indirect_imports(repository):
    """Modules that a package imports are dependencies, too."""
    repository.commit(
        **{
            "benchmarks/baselines/other.py": "from benchmarks.evaluation import truth\n",
            "benchmarks/evaluation/__init__.py": "from benchmarks.evaluation.truth import counts\n",
            "benchmarks/evaluation/truth.py": "counts = 1\n",
        }
    )
    names = ("speed/some", "baselines/other", "evaluation/__init__", "evaluation/truth")
    assert modules_of(repository.root, "benchmarks/speed/some.py") == {f"benchmarks/{name}.py" for name in names}


def test_a_table_is_written_with_a_stamp_under_a_declared_name(tmp_path, monkeypatch, capsys):
    """The stamp contains the commit, date, seeds, versions and machine. Other names are rejected."""
    monkeypatch.setattr(support, "RESULTS", tmp_path)
    mine = Benchmark(support.__file__, ("some",), (), 1, seeds="1 to 5")
    mine.table("Title", [["a", "b"], [1, 23]], "some", "A note.")
    text = (tmp_path / "some.md").read_text()
    assert text.startswith("# Title\n\n| a |  b |\n|---|----|\n| 1 | 23 |\n\nA note.\n\n<!-- measured: {")
    found = stamp_of(text)
    assert found["seeds"] == "1 to 5"
    assert set(found) == {"commit", "uncommitted", "date", "seeds", "python", "versions", "machine"}
    assert found["versions"]["numpy"]
    with pytest.raises(ValueError, match="not among the results"):
        mine.table("Title", [["a"]], "other")


@pytest.fixture
def kept(tmp_path):
    """Return a function that opens the same file of cells at each call."""
    return lambda commit="a", is_old=lambda commit: False: Cells(tmp_path / "cells" / "some.csv", commit, is_old)


def test_a_measured_cell_is_reused(kept):
    """A cell is measured once per run, and later runs reuse it at each commit with the same code."""
    calls = []

    def measure():
        calls.append(1)
        return [3, 0.25]

    first = kept()
    assert first.get(["a", "limit 1"], measure) == first.get(["a", "limit 1"], measure) == [3.0, 0.25]
    assert kept("b").get(["a", "limit 1"], measure) == [3.0, 0.25]
    assert len(calls) == 1


def test_cells_measured_with_old_code_are_discarded(kept):
    """The age of a cell depends on the commit of its measurement instead of the commit of the last run."""
    kept("a").get(["x"], lambda: [1])
    kept("b").get(["y"], lambda: [2])
    assert kept("c", lambda commit: commit == "a").get(["x"], lambda: [10]) == [10.0]


def test_an_interrupted_run_keeps_its_cells(kept):
    """A failed measurement does not remove other cells."""
    first = kept()
    first.get(["a"], lambda: [1])
    with pytest.raises(ZeroDivisionError):
        first.get(["b"], lambda: [1 / 0])
    assert kept().get(["a"], lambda: [9]) == [1.0]


def test_the_runner_skips_results_that_are_up_to_date_and_prints_failures(tmp_path, monkeypatch, capsys):
    """The first benchmark is up to date, the second has no environment, and the third does not write its result."""
    mine = [
        Benchmark(support.__file__, (name,), (), 1, environment=f"env-{name}") for name in ("new", "gone", "silent")
    ]
    monkeypatch.setattr(runner, "benchmarks", lambda: mine)
    monkeypatch.setattr(runner, "age", lambda each: ("2026", [] if each is mine[0] else ["changed"]))
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    monkeypatch.setattr(runner, "RESULTS", tmp_path)
    monkeypatch.setattr(runner, "LOGS", tmp_path / "logs")
    python = tmp_path / "env-silent" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to("/bin/true")
    monkeypatch.setattr("sys.argv", ["all", "--check"])
    assert runner.main() == 2
    monkeypatch.setattr("sys.argv", ["all"])
    assert runner.main() == 2
    said = capsys.readouterr().out
    assert "2 of 3 benchmarks are old" in said
    assert "env-gone is not here" in said
    assert "did not write silent" in said


def test_timed_benchmarks_run_alone(monkeypatch):
    """Timed benchmarks run one at a time. Afterwards, all other benchmarks run two at a time."""
    mine = [Benchmark(support.__file__, (name,), (), 1, timed=name < "c") for name in "abcd"]
    running, seen = set(), []
    both = Barrier(2)

    def run(each):
        running.add(each.results)
        if not each.timed:
            both.wait(timeout=60)
        seen.append((each.timed, len(running)))
        if not each.timed:
            both.wait(timeout=60)
        running.remove(each.results)
        return ""

    monkeypatch.setattr(runner, "benchmarks", lambda: mine)
    monkeypatch.setattr(runner, "age", lambda each: ("2026", ["changed"]))
    monkeypatch.setattr(runner, "run", run)
    monkeypatch.setattr("sys.argv", ["all"])
    assert runner.main() == 0
    assert seen == [(True, 1), (True, 1), (False, 2), (False, 2)]


def test_every_executable_module_is_a_benchmark_or_is_in_the_readme():
    """An executable module declares a benchmark, or the README contains its command."""
    root = runner.ROOT / "benchmarks"
    # These folders contain the environment of the compared libraries.
    mine = [path for path in root.rglob("*.py") if not {"peers", ".venv"} & {*path.parts}]
    runs = [path for path in mine if "__main__" in path.read_text()]
    commands = {"benchmarks." + ".".join(path.relative_to(root).with_suffix("").parts) for path in runs}
    readme = (root / "README.md").read_text()
    assert {name for name in commands - {each.module for each in BENCHMARKS} if name not in readme} == set()
    assert len(BENCHMARKS) > 20


def test_every_result_is_declared_once_and_used():
    """Each result has one declaration and is used by a page, the README, a picture or a claim."""
    assert runner.problems(BENCHMARKS) == []


def test_all_benchmarks_take_at_most_four_hours():
    """The declared minutes add up to at most four hours."""
    assert runner.hours(BENCHMARKS) <= runner.MOST_HOURS


@pytest.mark.slow  # It compares the syntax trees of all commits with results, like `make bench-stale`.
def test_no_result_is_older_than_its_code():
    """Every result is up to date with its code or declared as old. If this test fails, run `make bench-all`."""
    if git(runner.ROOT, "rev-parse", "--is-shallow-repository") != "false":
        pytest.skip("the commits of the results are missing, because this clone does not have its whole history")
    old = {reason.partition(".md:")[0] for each in BENCHMARKS for reason in runner.age(each)[1]}
    declared = tomllib.loads((runner.ROOT / "benchmarks" / "old.toml").read_text())["results"]
    assert old == set(declared)
    assert len(declared) == len(set(declared))


def test_a_stamp_contains_the_versions_of_peers(tmp_path, monkeypatch, capsys):
    """Some results depend on packages of another environment. If such a package is missing, the benchmark fails."""
    monkeypatch.setattr(support, "RESULTS", tmp_path)
    monkeypatch.setattr(support, "PEERS", Path(sys.executable))
    compared = Benchmark(support.__file__, ("some",), (), 1, peers=("polars", "numpy"))
    compared.table("Some", [["a"], [1]], "some")
    peers = stamp_of((tmp_path / "some.md").read_text())["peers"]
    assert peers == {"polars": version("polars"), "numpy": version("numpy")}
    with pytest.raises(subprocess.CalledProcessError):
        Benchmark(support.__file__, ("some",), (), 1, peers=("no-such-package",)).table("Some", [["a"], [1]], "some")


@pytest.mark.usefixtures("fixed_secrets")
@pytest.mark.parametrize("role", ROLES)
def test_scripts_of_the_first_release_benchmark_run(role, tmp_path, monkeypatch):
    """Each script of `benchmarks/speed/first_release.py` runs.

    The scripts are strings, so no other tool checks them.
    """
    monkeypatch.chdir(tmp_path)
    exec(compile(ROLES[role], role, "exec"), {})
