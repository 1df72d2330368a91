"""Tests that every example of the documentation runs, every link has a target, and every figure was measured.

| block of a page | test |
|---|---|
| `python` | runs, in one namespace for each page, in an empty folder |
| `output` | equals the output of the `python` block before it |
| `console` | each `$ voxpop ...` runs, and the lines below it are its output, in which `...` matches any text |
| `sh` | commands of other programs, which do not run here and are never `voxpop` |

A number before `<!-- = source -->` is the value of its source. A block after `<!-- not run: reason -->` does not run. A
page with `<!-- needs: file -->` runs with this file of the real data in its folder, or is skipped if there is no real
data. `VOXPOP_REWRITE_DOCS=1 pytest tests/test_docs.py` writes the printed output into the pages. Read the pages before
you commit them.
"""

import contextlib
import doctest
import importlib
import io
import math
import os
import pkgutil
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from benchmarks.spark.pairs import COSTS, PLAIN_SECONDS
from benchmarks.support.benchmark import STAMP
from tools.reference import MODULES as MODULES_OF_REFERENCE
from tools.reference import PAGES as REFERENCE_PAGES
from tools.reference import PLAIN, plain_page, public_names, with_public_names

import voxpop
from voxpop.cli import main
from voxpop.mechanisms.ngrams.describe import single_user
from voxpop.mechanisms.sequences.constants import FIRST_SYMBOLS, PER_NOISE, USUAL_LENGTH
from voxpop.privacy.guarantee import odds_after
from voxpop.privacy.path_budget import CLEAR
from voxpop.privacy.trie.accountant import trie_delta

pytestmark = pytest.mark.usefixtures("fixed_secrets")

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SITE = sorted(DOCS.rglob("*.md"))
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")), *SITE]
PAGES += [*sorted((ROOT / "examples").rglob("*.md")), ROOT / "benchmarks" / "README.md"]
BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>.*?) -->\n+)?```(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#]*)(?:#([^)]*))?\)")
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FIGURES = re.compile(r"<!-- figures of: (.*?) -->\n+((?:\|.*\n)+)")
NEEDS = re.compile(r"<!-- needs: (.*?) -->")
VALUE = re.compile(r"(\d[\d,]*(?:\.\d+)?)<!-- = (.*?) -->")
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w)")
MODULES = [module.name for module in pkgutil.walk_packages(voxpop.__path__, "voxpop.")]


def ident(page: Path) -> str:
    """Return the path of a page for test reports."""
    return str(page.relative_to(ROOT))


class DifferenceError(AssertionError):
    """Raised if the output on a page differs from the printed output."""

    def __init__(self, shown, printed):
        super().__init__(f"the page shows\n{shown}\nbut this was printed:\n{printed}")
        self.shown, self.printed = shown.strip("\n"), printed.strip("\n")


@dataclass
class Reader:
    """A session that runs the blocks of a page in one Python namespace and one folder."""

    name: str
    namespace: dict[str, object] = field(default_factory=dict)
    printed: str = ""

    def follow(self, language: str, text: str) -> None:
        """Run a block, or compare an `output` block with the printed output."""
        if language == "python":
            self.printed = printed_by(lambda: exec(compile(text, self.name, "exec"), self.namespace))[1]
        elif language == "output":
            if not matches(self.printed, text):
                raise DifferenceError(text, self.printed)
        elif language == "console":
            for command, shown in calls(text):
                code, printed = printed_by(lambda command=command: main(shlex.split(command)[1:]))
                assert code == 0, f"{command}: {printed}"
                if shown and not matches(printed, shown):
                    raise DifferenceError(shown, printed)
        else:
            assert language != "sh" or not re.search(r"^(\$ )?voxpop ", text, re.MULTILINE), text


def printed_by(run):
    """Return the result of a call and the printed output."""
    sink = io.StringIO()
    with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
        result = run()
    return result, sink.getvalue()


def calls(text):
    """Return the commands of a console block, each with the output below it."""
    parts = re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.MULTILINE)[1:]
    return [(command, shown.strip("\n")) for command, _, shown in (part.partition("\n") for part in parts)]


def matches(printed, shown):
    """Return whether a text matches the shown text, in which `...` matches any text."""
    lines = ["\n".join(line.rstrip() for line in text.strip("\n").splitlines()) for text in (printed, shown)]
    return re.fullmatch(".*?".join(map(re.escape, lines[1].split("..."))), lines[0], re.DOTALL) is not None


def with_marks(page):
    """Return a test parameter with a page and its marks.

    Pages show timings of compiled kernels, so pages run only with compiled kernels. Some pages also need real data.
    """
    data = [pytest.mark.data] if NEEDS.search(page.read_text()) else []
    return pytest.param(page, marks=[pytest.mark.jit, *data], id=ident(page))


@pytest.mark.parametrize("page", [with_marks(page) for page in PAGES])
def test_all_blocks_of_a_page_run(page, tmp_path, monkeypatch, request):
    """The blocks of a page run in order, in one namespace and in an empty folder."""
    if page.name == "spark.md":
        pytest.importorskip("pyspark", reason="pyspark is not installed: pip install voxpop[spark]")
    monkeypatch.chdir(tmp_path)
    for name in NEEDS.findall(page.read_text()):
        Path(name).symlink_to((request.getfixturevalue("data_dir") / name).resolve())
    reader = Reader(page.name)
    for block in BLOCK.finditer(page.read_text()):
        if block["reason"]:
            print(f"not run in {page.name}: {block['reason']}")
        else:
            follow_or_rewrite(reader, page, block)


def follow_or_rewrite(reader, page, block):
    """Run one block, and write the printed output into the page if VOXPOP_REWRITE_DOCS is set."""
    try:
        reader.follow(block["language"], block["text"])
    except DifferenceError as found:
        if not os.environ.get("VOXPOP_REWRITE_DOCS"):
            raise
        page.write_text(page.read_text().replace(found.shown, found.printed, 1))


@pytest.mark.parametrize(
    ("page", "broken"),
    [
        ("```python\nassert 1 == 2\n```\n", AssertionError),
        ("```python\nprint(1)\n```\n\n```output\n2\n```\n", AssertionError),
        ("```console\n$ voxpop plan items --epsilon 4 --delta 1e-7\nnothing ... at all\n```\n", AssertionError),
        ("```console\n$ voxpop plan items --epsilon 0 --delta 1e-7\n```\n", AssertionError),
        ("```sh\nvoxpop show nowhere\n```\n", AssertionError),
    ],
)
def test_a_wrong_block_is_detected(page, broken):
    """The cases are wrong blocks of each kind."""
    *before, last = BLOCK.finditer(page)
    reader = Reader("a page")
    for block in before:
        reader.follow(block["language"], block["text"])
    with pytest.raises(broken):
        reader.follow(last["language"], last["text"])


def test_only_console_blocks_contain_commands():
    """`voxpop` commands are only in console blocks, because tests do not run commands in other blocks."""
    for page in PAGES:
        for block in BLOCK.finditer(page.read_text()):
            if block["language"] not in ("console", "python") and not block["reason"]:
                assert not re.search(r"^(\$ )?voxpop ", block["text"], re.MULTILINE), (ident(page), block["text"])


@pytest.mark.parametrize("page", PAGES, ids=ident)
def test_links_have_targets(page):
    """Every relative link names a file of the repository, and every anchor names a heading of that file."""
    for target, anchor in LINK.findall(page.read_text()):
        path = (page.parent / target) if target else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


def test_design_records_are_short():
    """A design record has at most 400 words, as `wc -w` counts them. Measurements are in the appendix."""
    records = sorted((DOCS / "design").glob("[0-9]*.md"))
    assert len(records) > 15
    assert {ident(page): words for page in records if (words := len(page.read_text().split())) > 400} == {}


@pytest.mark.parametrize("module", MODULES_OF_REFERENCE)
def test_the_reference_documents_every_public_name(module):
    """One page of the reference has the marker of each public module, and its directives cover all public names."""
    marker = f"<!-- public names of: {module} -->"
    [page] = [page for page in (DOCS / "reference").glob("*.md") if marker in page.read_text()]
    assert page.stem == REFERENCE_PAGES.get(module, "README")
    text = with_public_names(page.read_text())
    names = {name for name in public_names(module) if f"{module}.{name}" not in MODULES_OF_REFERENCE}
    assert {name for name in names if not re.search(rf"auto\w+:: {module}\.{name}$", text, re.MULTILINE)} == set()
    assert len(names) > 3


def test_the_page_of_signatures_is_up_to_date():
    """docs/reference/api.md agrees with the package. To update the page, run `python -m tools.reference`."""
    assert PLAIN.read_text() == plain_page()


@pytest.mark.parametrize("page", PAGES, ids=ident)
def test_files_that_pages_mention_exist(page):
    """Each path or pattern on a page, for example of a test or a result, matches at least one file."""
    for path in re.findall(r"`((?:tests|benchmarks|examples|docs|src)/[\w./*-]*)`", page.read_text()):
        assert list(ROOT.glob(path.rstrip("/"))), path


def test_pages_that_the_code_mentions_exist():
    """Comments and docstrings mention proof pages and design records, and no other test checks these paths."""
    files = [path for folder in ("src", "flower", "checker", "tools") for path in (ROOT / folder).rglob("*.py")]
    named = {found for path in files for found in re.findall(r"docs/[\w/.-]+\.md", path.read_text())}
    assert len(named) > 20
    assert [each for each in sorted(named) if not (ROOT / each).exists()] == []


def anchors(page):
    """Return the anchors of a page's headings, in the format of code hosts and MyST."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_is_in_a_table_of_contents():
    """Every page and notebook can be reached from docs/index.md through tables of contents."""
    reached, waiting = set(), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached:
            reached.add(page)
            waiting += entries(page)
    assert {*SITE, *DOCS.rglob("*.ipynb")} - reached == set()


def entries(page):
    """Return the pages in the tables of contents of a page."""
    names = [
        line
        for contents in TOCTREE.findall(page.read_text() if page.suffix == ".md" else "")
        for line in contents.splitlines()
        if line and not line.startswith(":")
    ]
    return [path for name in names for suffix in (".md", ".ipynb") for path in page.parent.glob(name + suffix)]


@pytest.mark.parametrize("page", [ROOT / "README.md", *SITE], ids=ident)
def test_figures_in_tables_were_measured(page):
    """If a table names result files, each of its numbers is in one of these files."""
    for sources, rows in FIGURES.findall(page.read_text()):
        texts = [(ROOT / source).read_text().partition(STAMP)[0] for source in sources.split(", ")]
        measured = {number for text in texts for number in numbers(text)}
        for row in rows.splitlines()[2:]:
            for cell in row.strip("|").split("|")[1:]:
                assert numbers(cell) <= measured, f"{cell.strip()} is not in {sources}"


def numbers(text):
    """Return the numbers of a text as values."""
    return {float(number.replace(",", "")) for number in NUMBER.findall(text)}


def cell(file: str, row: str, column: str) -> float:
    """Return a number from a table in benchmarks/results, without its deviation and unit.

    Args:
        file: The name of the result file.
        row: The first cell of the row. If several rows begin with this cell, the first of them is used.
        column: The heading of the column.
    """
    rows = [
        [part.strip() for part in line.strip().strip("|").split("|")]
        for line in (ROOT / "benchmarks" / "results" / file).read_text().splitlines()
        if line.startswith("|")
    ]
    place = next(number for number, cells in enumerate(rows) if cells[0] == row)
    heading = next(cells for cells in reversed(rows[:place]) if column in cells)
    return float(rows[place][heading.index(column)].partition(" ")[0].replace(",", ""))


def planned(mechanism, epsilon: float, delta: float = 1e-7):
    """Return the plan of a mechanism for a budget."""
    return mechanism.plan(voxpop.Budget(epsilon, delta))


def changing(epsilon: float, delta: float) -> float:
    """Return the factor by which the delta of heavy hitters increases if users' words change between rounds."""
    rules = planned(voxpop.HeavyHitters(max_length=10), epsilon, delta).rules
    return trie_delta(epsilon, rules.ballot, rules.rounds, "many") / delta


VALUES = {
    "changing": changing,
    "vp": voxpop,
    "plan": planned,
    "cell": cell,
    "costs": COSTS,
    "PLAIN_SECONDS": PLAIN_SECONDS,
    "FIRST_SYMBOLS": FIRST_SYMBOLS,
    "PER_NOISE": float(PER_NOISE),
    "USUAL_LENGTH": USUAL_LENGTH,
    "CLEAR": CLEAR,
    "single": lambda epsilon: float(single_user(planned(voxpop.NGrams(), epsilon).to_dict()).split()[0]),
    "belief": lambda epsilon: 100 * odds_after(epsilon, 1e-7, 0.5),
    "exp": math.exp,
    "sqrt": math.sqrt,
}
"""The names that the source of a number may use."""


def up_to_date(text: str) -> list[tuple[str, str]]:
    """Return each number that has a source in a text, as shown on the page and as computed from the source."""
    found = []
    for shown, source in VALUE.findall(text):
        digits = len(shown.partition(".")[2])
        found.append((shown, f"{eval(source, VALUES):,.{digits}f}"))
    return found


@pytest.mark.parametrize("page", [page for page in PAGES if VALUE.search(page.read_text())], ids=ident)
def test_numbers_in_prose_are_computed(page):
    """A number before `<!-- = source -->` equals the value of its source, such as a plan or a cell of a result file."""
    for shown, computed in up_to_date(page.read_text()):
        assert shown == computed


def test_an_old_number_in_prose_is_detected():
    """If a number is old, the shown form differs from the computed form."""
    [(shown, computed)] = up_to_date("about 118<!-- = plan(vp.Items(), 1).users_needed(0.9, per_user=10) --> users")
    assert shown != computed


def test_pictures_are_drawn_by_the_script():
    """docs/pictures/draw.py draws exactly the pictures on the pages."""
    shown = {Path(target).name for page in PAGES for target in re.findall(r"pictures/([\w-]+\.svg)", page.read_text())}
    drawn = set(re.findall(r'"([\w-]+\.svg)"', (DOCS / "pictures" / "draw.py").read_text()))
    assert shown == drawn == {path.name for path in (DOCS / "pictures").glob("*.svg")}


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name):
    """The examples in the docstrings of a module print the shown results."""
    if name == "voxpop.exports.sklearn":
        pytest.importorskip("sklearn", reason="scikit-learn is not installed: make exports")
    if name.startswith("voxpop.engine.spark"):
        pytest.importorskip(
            "pyspark", reason="pyspark is not installed: pip install voxpop[spark]; make spark runs these"
        )
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for each in doctest.DocTestFinder().find(importlib.import_module(name), name):
        if (
            each.examples
        ):  # Most docstrings have no example, and `doctest.testmod` prepares a debugger for each of them.
            assert runner.run(each).failed == 0
