"""Tests that dependencies are few, bounded and locked, and have suitable licences."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from tools import description
from tools.description import WITH_ADDRESS, address_of, described, set_address, urls
from tools.licences import FORBIDDEN, PAGE, required
from tools.wheels_tried import relative_links

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements" / "locked.txt").read_text()
INSTALLS = re.compile(r"pip install ['\"]?voxpop(?! @ )")
PIN = re.compile(r"^([a-z0-9][a-z0-9.-]*)==([^\s;\\]+)", re.MULTILINE)


def test_every_dependency_is_bounded_and_locked_within_its_bounds():
    """Each dependency has a lower and an upper bound, and all locked versions are within them."""
    locked: dict[str, list[str]] = {}
    for name, version in PIN.findall(LOCK):
        locked.setdefault(name, []).append(version)
    needs = [Requirement(each) for each in PROJECT["dependencies"]]
    assert len(needs) <= 12  # One of them is icu4py, which splits texts in scripts without spaces.
    for need in needs:
        assert {each.operator for each in need.specifier} == {">=", "<"}, need
        assert all(need.specifier.contains(Version(version)) for version in locked[need.name]), need


def test_every_locked_version_has_hashes():
    """The lock file contains hashes, so an installation from this file consists of exactly the locked packages."""
    for block in re.split(r"\n(?=[a-z0-9])", LOCK):
        if PIN.match(block):
            assert "--hash=sha256:" in block, block.splitlines()[0]
    assert "--index-url" not in LOCK


def test_licences_are_listed_and_permitted():
    """Every installed dependency is on the page of licences, and no dependency has a forbidden licence."""
    licences = required()
    listed = PAGE.read_text()
    assert set(licences) >= {"numpy", "polars", "pyarrow"}
    for name, said in licences.items():
        assert f"| {name} |" in listed, f"{name} is not on docs/licences.md: make licences"
        assert not FORBIDDEN.search(said)


@pytest.mark.parametrize("address", ["", "https://host.invalid/team/voxpop"])
def test_the_long_description_has_no_relative_links(address):
    """A package index shows README.md with complete links, or without links if the project has no address yet."""
    readme = (ROOT / "README.md").read_text()
    text = described(readme, address)
    assert relative_links(readme)
    assert relative_links(text) == []
    addresses = re.findall(r"\]\((https?://[^)]*)\)", text)
    assert all(each.startswith("https://host.invalid/team/voxpop/") for each in addresses)
    assert (f"{address}/raw/main/docs/pictures/overview.svg" in addresses) == bool(addresses) == bool(address)
    assert "comparison" in text
    assert "pip install" in text


def test_the_address_of_the_project_occurs_once():
    """One setting contains the address of the repository, and all other addresses are derived from it."""
    text = (ROOT / "pyproject.toml").read_text()
    address = address_of(tomllib.loads(text))
    assert set(re.findall(r'^[^#\n]*"(https://[^"]+)"', text, re.MULTILINE)) == ({address} if address else set())
    assert set(PROJECT["dynamic"]) == {"readme", "urls"}
    assert urls("") == {}
    found = urls("https://host.invalid/voxpop")
    assert found.keys() >= {"Homepage", "Documentation", "Changelog", "Security"}
    for each in found.values():
        page = each.removeprefix("https://host.invalid/voxpop").removeprefix("/blob/main/")
        assert (ROOT / page).exists()


def test_every_optional_library_has_an_extra():
    """Each library that an export or an engine needs is in an extra with version bounds."""
    extras = PROJECT["optional-dependencies"]
    needed = {
        "spark",
        "sql",
        "databases",
        "pandas",
        "scikit-learn",
        "tokenizers",
        "spacy",
        "duckdb",
    }
    assert needed <= extras.keys()
    assert all(Requirement(each).specifier for names in extras.values() for each in names)


def test_the_address_is_written_into_all_clone_commands(tmp_path, monkeypatch):
    """One command sets the address and can later change it. Afterwards, no page contains a placeholder."""
    for name in ("pyproject.toml", *WITH_ADDRESS):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    monkeypatch.setattr(description, "ROOT", tmp_path)
    for address in ("https://host.invalid/first/voxpop", "https://host.invalid/team/voxpop"):
        set_address(address)
        assert address_of(tomllib.loads((tmp_path / "pyproject.toml").read_text())) == address
        for name in WITH_ADDRESS:
            assert f"git clone {address} voxpop" in (tmp_path / name).read_text()
            assert "ADDRESS" not in (tmp_path / name).read_text()


def test_no_text_recommends_installing_from_the_index():
    """Version 0.1.0 is not published, so no page, message or docstring contains `pip install voxpop`."""
    places = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    places += [
        path for name in ("src", "flower", "checker", "examples") for path in (ROOT / name).rglob("*") if path.is_file()
    ]
    found = [
        path
        for path in places
        if path.suffix in (".py", ".md", ".toml", ".html", ".txt")
        and ".venv" not in path.parts
        and INSTALLS.search(path.read_text())
    ]
    assert found == []
    assert INSTALLS.search("pip install 'voxpop[spark]'")
