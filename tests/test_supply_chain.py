"""Dependencies are few, bounded, locked, and of licences that fit."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version
from tools.licences import FORBIDDEN, PAGE, required
from tools.wheels_tried import relative_links

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements" / "locked.txt").read_text()
PIN = re.compile(r"^([a-z0-9][a-z0-9.-]*)==([^\s;\\]+)", re.MULTILINE)


def test_every_dependency_is_bounded_on_both_sides_and_locked_within():
    """A lowest version that is known to do, and a next one that nobody has tried yet."""
    locked: dict[str, list[str]] = {}
    for name, version in PIN.findall(LOCK):
        locked.setdefault(name, []).append(version)
    needs = [Requirement(each) for each in PROJECT["dependencies"]]
    assert len(needs) <= 11
    for need in needs:
        assert {each.operator for each in need.specifier} == {">=", "<"}, need
        assert all(need.specifier.contains(Version(version)) for version in locked[need.name]), need


def test_every_locked_version_has_hashes():
    """What is installed from the lock is what was locked, byte for byte."""
    for block in re.split(r"\n(?=[a-z0-9])", LOCK):
        if PIN.match(block):
            assert "--hash=sha256:" in block, block.splitlines()[0]
    assert "--index-url" not in LOCK


def test_licences_are_listed_and_fit():
    """Every package that is installed along is on the page, by a licence that asks nothing of those who use it."""
    licences = required()
    listed = PAGE.read_text()
    assert set(licences) >= {"numpy", "polars", "pyarrow"}
    for name, said in licences.items():
        assert f"| {name} |" in listed, f"{name} is not on docs/licences.md: make licences"
        assert not FORBIDDEN.search(said)


def test_the_long_description_needs_no_checkout():
    """An index shows README.md with whole addresses: what the build puts in leaves no relative link or picture."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"]["hooks"]
    text = (ROOT / "README.md").read_text()
    assert relative_links(text)
    for each in build["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    assert relative_links(text) == []
    assert re.search(r"\(https://[^)]*/raw/main/docs/pictures/overview\.svg\)", text)


def test_links_of_the_project_have_one_address():
    """Every place that names the repository names the same one."""
    text = (ROOT / "pyproject.toml").read_text()
    addresses = set(re.findall(r"https://([\w.-]+)", text))
    assert len(addresses) == 1
    assert PROJECT["urls"].keys() >= {"Homepage", "Documentation", "Changelog"}


def test_every_export_has_an_extra():
    """Each library that an export or an engine needs can be asked for by name."""
    extras = PROJECT["optional-dependencies"]
    needed = {
        "spark",
        "flower",
        "sql",
        "databases",
        "pandas",
        "scikit-learn",
        "tokenizers",
        "spacy",
        "gensim",
        "duckdb",
    }
    assert needed <= extras.keys()
    assert all(Requirement(each).specifier for names in extras.values() for each in names)
