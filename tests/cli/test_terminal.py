"""Tests that commands print no active control characters, and show where tokens begin and end."""

import json
import shutil
import warnings
from hashlib import sha256

import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from voxpop.errors import InputError, ReleaseError, shown
from voxpop.ledger import storage
from voxpop.privacy.budget import all_printable, printable
from voxpop.reading.keys import KeyColumn, Keys
from voxpop.release.result import StoredPlan

EVIL = "x\x1b[2J\x1b]0;owned\x07\x9b31m\u202etxt\u2066\u200b\r\x08\nGuarantee: (0, 0)-DP"


def is_safe(text):
    """Return whether a text contains neither terminal control characters nor the forged line."""
    lines = text.split("\n")
    return all(line.isprintable() for line in lines) and not any(line.startswith("Guarantee: (0, 0)") for line in lines)


def forge(folder, name, change):
    """Change a record in a folder and correct all checksums, as an attacker could."""
    record = json.loads((folder / name).read_text())
    change(record)
    (folder / name).write_text(json.dumps(record))
    sums = [line.split("  ") for line in (folder / "SHA256SUMS").read_text().splitlines()]
    new = [(sha256((folder / file).read_bytes()).hexdigest(), file) for _, file in sums]
    (folder / "SHA256SUMS").write_text("".join(f"{digest}  {file}\n" for digest, file in new))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Save a release of items with control characters once."""
    table = pl.DataFrame({"who": range(3000), "what": [EVIL, "tea", "milk"] * 1000})
    release = vp.Items(max_items_per_user=1).release(vp.read(table, user="who", items="what"), vp.Budget(4, 1e-6))
    assert (EVIL,) in list(release.each_gram())
    path = tmp_path_factory.mktemp("saved") / "words"
    release.save(path)
    return path


@pytest.fixture
def folder(saved, tmp_path):
    """Copy the saved release into the folder of the commands."""
    return shutil.copytree(saved, tmp_path / "words")


def put(record, path, value):
    """Set a value within a record."""
    *above, last = path
    for name in above:
        record = record.setdefault(name, {})
    record[last] = value


PLACES = [
    (),
    ("plan", "mechanism"),
    ("plan", "weighting"),
    ("plan", EVIL),
    ("plan", "budget"),
    ("plan", "sigma"),
    ("plan", "max_items_per_user"),
    ("guarantee", "neighbours"),
    ("guarantee", "server_view"),
    ("guarantee", "epsilon"),
    ("statement",),
    ("metadata", "title"),
    ("metadata", "dataset"),
    ("metadata", "ledger"),
    ("metadata", "date"),
    ("voxpop_version",),
    ("format_version",),
    ("format",),
    ("token_source",),
    ("keys",),
    ("checksums",),
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: "-".join(map(ascii, place)))
def test_forged_folders_print_no_control_characters(voxpop, folder, place):
    """Any text in a record is printed with escapes or causes an error."""
    if place:
        forge(folder, "release.json", lambda record: put(record, place, EVIL))
    for command in ("show", "verify", "complete"):
        ran = voxpop(command, "words")
        assert is_safe(ran.out), command
        assert is_safe(ran.err), command
        assert ran.code in (0, 2), ran.err
    for command in ("show", "verify"):
        assert voxpop(command, "words", "--json").out.strip().isprintable()


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "a\nb", "\u202ea"])
def test_file_names_print_no_control_characters(voxpop, folder, name):
    """Escapes replace control characters in the names of a folder and its files."""
    (folder / name).write_text("x")
    ran = voxpop("verify", "words")
    assert (ran.code, is_safe(ran.err)) == (2, True)
    (folder / name).unlink()
    folder.rename(folder.with_name(name))
    for command in ("show", "verify"):
        ran = voxpop(command, name)
        assert ran.code == 0, ran.err
        assert is_safe(ran.out + ran.err)
    ran = voxpop("show", f"{name}.missing")
    assert (ran.code, is_safe(ran.err)) == (2, True)


@pytest.mark.parametrize("place", ["dataset", "label", "mechanism", "charged", "release", "state"])
def test_forged_ledgers_print_no_control_characters(voxpop, tmp_path, place):
    """Control characters in names, labels and all other text of a ledger are shown as escapes on one line."""
    path = tmp_path / "team.ledger"
    account = vp.Ledger(path).open("posts", vp.Budget(7, 1e-4), create=True)
    account.charge(vp.Guarantee(1, 1e-6), "items", "first")
    with storage.changing(path) as datasets:
        if place == "dataset":
            datasets[EVIL] = datasets["posts"]
        else:
            datasets["posts"]["entries"][0][place] = EVIL
    for more in ([], ["--dataset", "none"], ["--dataset", EVIL], ["--for", "items", "--delta", "1e-8"]):
        ran = voxpop("ledger", "show", "team.ledger", *more)
        assert is_safe(ran.out + ran.err), more
        assert ran.code in (0, 2)
        assert "owned" not in ran.out or len([line for line in ran.out.split("\n") if "owned" in line]) == 1


def test_messages_of_the_library_contain_no_control_characters(tmp_path):
    """Messages contain no control characters, because interpreters print them and logs contain them."""
    assert is_safe(str(InputError(EVIL.replace("\n", " "))))
    with pytest.raises(ReleaseError) as caught:
        vp.load(tmp_path / EVIL.replace("\n", " "))
    assert is_safe(str(caught.value))
    with pytest.raises(InputError) as caught:
        vp.read({"a\x1b[2J": [1], "b": [2]}, user="a\x1b[2J", items="c\x1b[2J")
    assert is_safe(str(caught.value))


def test_forged_records_cannot_add_lines_to_plans():
    """A string in a plan cannot add lines to its text, whether the mechanism is known or not."""
    for mechanism in ("items", EVIL):
        for numbers in ({"weighting": EVIL}, {EVIL: EVIL}, {"data": [EVIL, {"x": EVIL}]}):
            assert is_safe(str(StoredPlan({"mechanism": mechanism, **numbers})))


def test_column_names_in_a_profile_print_no_control_characters(voxpop, tmp_path):
    """Column names are public, but they can originate from an untrusted file."""
    table = pl.DataFrame({"who": range(3000), EVIL: ["a b", "c"] * 1500, "n": [1, 2] * 1500})
    table.write_parquet(tmp_path / "t.parquet")
    ran = voxpop("profile", "t.parquet", "--user", "who", "--epsilon", 4, "--delta", "1e-6", "-o", "p")
    assert ran.code == 0, ran.err
    shown_again = voxpop("show", "p")
    assert is_safe(ran.out + ran.err + shown_again.out + shown_again.err)


def test_the_borders_of_tokens_are_shown(voxpop, tmp_path):
    """Grams that would look the same without borders are printed differently.

    Items of one token are printed unchanged.
    """
    assert printable(("new york",)) == "new york"
    texts = all_printable([("new york", "city"), ("new", "york city"), ("new york city",), ("new", "york", "city")])
    assert len(set(texts)) == 4
    assert texts[0] == '"new york" city'
    assert printable(('"a', 'b"')) != printable(("a b", "c"))
    names = ["new york", "city", "new", "york city"]
    sequences = [["new york", "city"], ["new", "york city"]]
    pl.DataFrame({"who": range(4000), "visit": sequences * 2000}).write_parquet(tmp_path / "t.parquet")
    budget = ["--epsilon", 2, "--delta", "1e-7", "-o", "out"]
    ran = voxpop("ngrams", "t.parquet", "--user", "who", "--sequence", "visit", "--max-length", 2, *budget)
    for text in (ran.out, voxpop("show", "out").out):
        assert '"new york" city' in text
        assert 'new "york city"' in text
    assert len(names) == len(set(names))


def test_plain_text_is_shown_unchanged_and_controls_are_escaped():
    """Letters of all scripts, emoji and line feeds do not change. Other control characters are escaped."""
    assert shown("čaj 茶 ☕\nنص") == "čaj 茶 ☕\nنص"
    assert shown("a\tb\u2028\u00ad\ud800") == "a\\tb\\u2028\\xad\\ud800"


def test_column_names_are_escaped_in_html():
    """The summary in a notebook and the report escape column names."""
    keys = Keys((KeyColumn("<b>\x1b[2J", "string"),))
    release = vp.Release.from_items(pa.array(["<i>", EVIL]), StoredPlan({}), vp.Guarantee(4, 1e-7), "items", keys)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page = release._repr_html_() + release.report().html
    assert "\x1b" not in page
    assert "&lt;i&gt;" in page
