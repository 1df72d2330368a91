"""A number that several places show is the same in all: plan, report, command line, record and table."""

import json
import re

import polars as pl
import pytest

import voxpop as vp
from voxpop.cli.releasing import summary
from voxpop.cli.saved import first_of
from voxpop.release.registry import MECHANISMS, load
from voxpop.release.report.page import story_of

BUDGET = vp.Budget(4, 1e-7)
TABLE = pl.DataFrame({"who": range(3000), "what": ["thank you very much", "see you soon"] * 1500})
VISITS = pl.DataFrame({"who": range(3000), "to": [["a", "b"], ["a"], ["b", "a", "c"]] * 1000})
DISCOVERING = [each for each in MECHANISMS if each.name not in ("counts", "top")]


def released_by(mechanism):
    """Return a result of a mechanism with its default settings, or with an alphabet where it needs one."""
    kind = load(mechanism.config)
    if mechanism.name == "sequences":
        return kind(alphabet=["a", "b", "c"]).release(vp.read(VISITS, user="who", sequence="to"), BUDGET)
    return kind().release(vp.read(TABLE, user="who", text="what"), BUDGET)


@pytest.fixture(scope="module", params=DISCOVERING, ids=lambda each: each.command)
def case(request, tmp_path_factory):
    """A mechanism, its result, and the folder of it."""
    result = released_by(request.param)
    folder = tmp_path_factory.mktemp("same") / "result"
    result.save(folder)
    return request.param, result, folder


def test_the_number_released_is_the_same_everywhere(case):
    """Python, the loaded result, the command line, the table on disk and the report agree."""
    _, result, folder = case
    number = len(result)
    assert number > 0
    again = vp.load(folder)
    assert len(again) == len(result.to_list()) == result.to_arrow().num_rows == number
    assert summary(again, folder)["released"] == number
    count, *_ = first_of(again, 20)
    assert f" {number:,} " in count
    page = (folder / "report.html").read_text()
    assert re.search(r"<dt>Released</dt><dd>([\d,]+)</dd>", page)[1] == f"{number:,}"
    if isinstance(result, vp.Release):
        assert pl.read_parquet(folder / "release.parquet").height == number


def test_users_needed_are_the_same_everywhere(case):
    """What the plan computes stands in its text, in the record, in what `show` prints and in the report."""
    mechanism, result, folder = case
    if mechanism.story is None:
        assert not hasattr(result.plan, "users_needed")
        return
    loaded = vp.load(folder)
    numbers = json.loads((folder / "release.json").read_text())["plan"]
    assert numbers == result.plan.to_dict() == loaded.plan.to_dict()
    wanted = result.plan.users_needed(0.9, **mechanism.users_needed)
    assert f"{wanted:,}" in str(result.plan)
    assert str(wanted) in re.findall(r"\d+", str(loaded.plan))
    story = story_of(numbers, {1: len(result)})
    cells = [cell for row in story.needed.rows for cell in row]
    assert f"{wanted:,}" in cells
    assert f"<td>{wanted:,}</td>" in (folder / "report.html").read_text()
