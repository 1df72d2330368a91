"""Tests that the plan, record, command line, report, JSON files and Parquet files show the same numbers."""

import html
import json
import re

import polars as pl
import pytest

import voxpop as vp
from voxpop.cli import main
from voxpop.release.registry import MECHANISMS, load_object
from voxpop.release.report.page import story_of

BUDGET = vp.Budget(4, 1e-7)
TABLE = pl.DataFrame({"who": range(3000), "what": ["thank you very much", "see you soon"] * 1500})
VISITS = pl.DataFrame({"who": range(3000), "to": [["a", "b"], ["a"], ["b", "a", "c"]] * 1000})
ADDED = {
    "counts": ("counts", lambda words, posts: words.count(posts, BUDGET)),
    "top": ("top", lambda words, posts: words.top(posts, BUDGET, k=3)),
}
"""The results that are saved with a release, each with the stem of its files and the function that makes it."""


class Case:
    """A result of one mechanism, the loaded result, and every output that contains its numbers."""

    def __init__(self, mechanism, folder):
        self.mechanism, self.folder = mechanism, folder
        posts = vp.read(TABLE, user="who", text="what")
        stem, add = ADDED.get(mechanism.name, ("release", None))
        kind = load_object(mechanism.config)
        if mechanism.name == "sequences":
            stem = "model"
            self.result = kind(alphabet=["a", "b", "c"]).release(vp.read(VISITS, user="who", sequence="to"), BUDGET)
        elif mechanism.name == "profile":
            stem = "profile"
            self.result = vp.profile(TABLE, user="who", text=["what"], budget=BUDGET)
        elif mechanism.name == "keys":
            stem = "profile"
            self.result = vp.profile(VISITS.explode("to"), user="who", joint=[("to",)], budget=BUDGET)
        elif add is None:
            self.result = kind().release(posts, BUDGET)
        else:
            words = vp.Items().release(posts, BUDGET)
            words.save(folder)
            self.result = add(words, posts)
        self.result.save(folder)
        self.loaded = vp.load(folder, type(self.result))
        self.record = json.loads((folder / f"{stem}.json").read_text())
        self.page = self.loaded.report().html
        self.text = html.unescape(re.sub(r"<[^>]*>", " ", self.page))
        self.exported = None

    @property
    def added(self):
        """Whether the result is saved in the folder of a release."""
        return self.mechanism.name in ADDED


@pytest.fixture(scope="module", params=MECHANISMS, ids=lambda each: each.command)
def case(request, tmp_path_factory):
    """Return one case for each mechanism of the registry."""
    return Case(request.param, tmp_path_factory.mktemp("same") / "result")


@pytest.fixture
def shown(case, capsys):
    """Return the output of `voxpop show`, as text and as JSON."""

    def run(*options):
        assert main(["show", str(case.folder), *options]) == 0
        return capsys.readouterr().out

    return run(), json.loads(run("--json"))


def test_all_outputs_contain_the_same_number_of_released_rows(case, shown):
    """The result, the loaded result, the command line, the saved tables and the report contain the same number."""
    number = len(case.result)
    assert number > 0
    assert len(case.loaded) == len(case.result.to_list()) == case.result.to_arrow().num_rows == number
    released = case.loaded.grams if case.added else case.loaded
    text, content = shown
    assert content["released"] == len(released)
    assert f" {len(released):,} " in text
    (reported,) = re.findall(r"<dt>Released</dt><dd>([\d,]+)</dd>", case.page)
    assert reported == f"{len(released):,}"
    if case.mechanism.name == "top":
        assert len(content["top"]["grams"]) == number
    for path in case.folder.glob("*.parquet"):
        rows = pl.read_parquet(path)
        wanted = {"release": len(released), "counts": len(released), "top": number, "alphabet": 3, "profile": number}
        if path.stem == "grams":
            assert rows["counts"].list.len().sum() == number
        else:
            assert rows.height == wanted[path.stem], path.name


def test_all_outputs_contain_the_same_guarantee(case, shown):
    """The plan, the record, the command line and the report contain the same guarantee.

    Counts and rankings also contain the total guarantee, which includes their release.
    """
    stated = case.result.guarantee
    assert (
        case.result.plan.guarantee
        == stated
        == case.loaded.guarantee
        == vp.Guarantee.from_dict(case.record["guarantee"])
    )
    assert case.record["guarantee"] == stated.to_dict()
    assert case.record["statement"] == str(stated)
    assert str(stated) in str(case.result.plan)
    assert str(stated) in case.text
    text, content = shown
    main_one = case.loaded.grams.guarantee if case.added else stated
    assert content["guarantee"] == main_one.to_dict()
    assert f"Guarantee: {main_one}" in text
    if case.added:
        assert case.record["total"] == str(case.result.total) == str(case.loaded.total)
        assert str(case.result.total.adaptive) in case.text


def test_all_outputs_contain_the_same_numbers_of_the_plan(case, shown):
    """The plan, the record and the JSON output have the same numbers, which the report lists.

    The texts of the executed and the stored plan are created by the same function.
    """
    numbers = case.result.plan.to_dict()
    assert case.record["plan"] == numbers == case.loaded.plan.to_dict() == json.loads(json.dumps(numbers))
    described = str(load_object(case.mechanism.describe)(numbers))
    assert str(case.loaded.plan) == described
    # The text of a plan before the release also contains its guarantee.
    assert {*described.splitlines()[3:]} <= {*str(case.result.plan).splitlines()}
    text, content = shown
    if case.added:
        return
    assert content["plan"] == numbers
    assert "\n".join(f"  {line}".rstrip() for line in described.splitlines()) in "\n".join(
        line.rstrip() for line in text.splitlines()
    )
    assert "{'" not in text
    listed = dict(re.findall(r'<tr><th scope="row">([^<]*)</th><td>([^<]*)</td></tr>', case.page))
    for name, value in numbers.items():
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            cell = html.unescape(listed[name.replace("_", " ")]).replace(",", "")
            assert cell == str(value).replace(",", "") or float(cell) == pytest.approx(value, rel=1e-5), name


def test_all_outputs_contain_the_same_number_of_users_needed(case, shown):
    """The number of users needed is in the text of a plan, the loaded plan, the output of `show` and the report."""
    if case.mechanism.story is None:
        assert not hasattr(case.result.plan, "users_needed")
        return
    wanted = case.result.plan.users_needed(0.9)
    places = {"plan": str(case.result.plan), "loaded": str(case.loaded.plan), "show": shown[0]}
    for name, text in places.items():
        assert f"{wanted:,}" in re.findall(r"[\d,]*\d", text), name
    story = story_of(case.record["plan"], {1: len(case.result)})
    assert f"{wanted:,}" in [cell for row in story.needed.rows for cell in row]
    assert f"<td>{wanted:,}</td>" in case.page


def test_an_export_contains_the_same_guarantee(case, tmp_path):
    """The JSON and Parquet files of `voxpop export` contain the same numbers."""
    if not isinstance(case.result, vp.Release):
        return
    vp.exports.write(case.loaded, tmp_path / "all.json")
    content = json.loads((tmp_path / "all.json").read_text())
    assert content["guarantee"] == case.record["guarantee"]
    assert content["statement"] == case.record["statement"]
    assert content["plan"] == case.record["plan"]
    assert len(content["grams"]) == len(case.result)
    vp.exports.write(case.loaded, tmp_path / "all.parquet")
    assert pl.read_parquet(tmp_path / "all.parquet").height == len(case.result)
