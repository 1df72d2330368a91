"""Tests of `voxpop verify`, which checks that files are unchanged and that plans agree with their settings."""

import hashlib
import json
import re
import shutil
import subprocess
import zlib
from base64 import b64decode, b64encode

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voxpop as vp
from voxpop.cli import main
from voxpop.errors import ReleaseError
from voxpop.privacy.composition import total_of
from voxpop.release.registry import MECHANISMS
from voxpop.release.saving import checksum
from voxpop.release.verifying import plan_again, verify

BUDGET = vp.Budget(4, 1e-7)
WORDS = {
    "default": vp.Items(),
    "limit": vp.Items(max_items_per_user=20),
    "list": vp.Items(known=["thank", "nobody"]),
    "phrases with a list": vp.NGrams(max_length=3, known=["thank", "nobody"]),
    "few users": vp.Items(min_users=20),
    "published": vp.papers.SetUnion(20, alpha=4.0),
    "laplace": vp.papers.SetUnion(3, "weighted-laplace", accounting="joint", min_users=20),
    "optimal": vp.papers.OptimalSelection(),
    "phrases": vp.NGrams(),
    "values": vp.NGrams(max_length=3, length_weights=[1, 2, 3], max_phrases_per_user=50, max_spurious_share=0.001),
    "hitters": vp.HeavyHitters(),
    "unit": vp.HeavyHitters(max_length=4, unit=1),
}
KEYS = {"one key": 1, "two keys": 2, "six keys": 6}
SEQUENCES = {"alphabet": vp.Sequences(alphabet=["a", "b", "c"]), "found": vp.Sequences(alphabet="find", max_gram=3)}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return a folder with saved results of every mechanism and of several settings.

    The folder of the first result also contains counts and a ranking.
    """
    home = tmp_path_factory.mktemp("verified")
    table = pl.DataFrame({"who": range(3000), "what": ["thank you very much", "see you soon"] * 1500})
    visits = pl.DataFrame({"who": range(3000), "to": [["a", "b"], ["a"], ["b", "a", "c"]] * 1000})
    posts, paths = vp.read(table, user="who", text="what"), vp.read(visits, user="who", sequence="to")
    for name, mechanism in WORDS.items():
        mechanism.release(posts, BUDGET).save(home / name)
    for name, mechanism in SEQUENCES.items():
        mechanism.release(paths, BUDGET).save(home / name)
    words = vp.load(home / "default", vp.Release)
    words.count(posts, BUDGET).save(home / "default")
    words.top(posts, BUDGET, k=3).save(home / "default")
    vp.Items().release(posts, BUDGET, seed=1).save(home / "seeded")
    vp.profile(table, user="who", text=["what"], budget=BUDGET).save(home / "profile")
    vp.profile(table, user="who", joint=[["what"]], budget=BUDGET).save(home / "keys")
    for name, held in KEYS.items():
        users, keys = zip(*((user, f"k{(user + i) % 9}") for user in range(3000) for i in range(held)), strict=True)
        vp.profile(pl.DataFrame({"who": users, "key": keys}), user="who", joint=[("key",)], budget=BUDGET).save(
            home / name
        )
    for name, release in vp.Items().release_each({"one": posts, "two": posts}, BUDGET).items():
        release.save(home / name)
    lists = {"what": ["thank", "nobody"]}
    vp.profile(table, user="who", text=["what"], known=lists, budget=BUDGET).save(home / "profile with a list")
    return home


ALL = [*WORDS, *SEQUENCES, *KEYS, "profile", "profile with a list", "keys", "seeded", "one", "two"]


@pytest.mark.parametrize("name", ALL)
def test_every_setting_is_planned_again(folders, name):
    """Planning again with the settings of the record gives the same numbers and guarantee."""
    found = verify(folders / name)
    assert (
        found["results"][0]["guarantee"]
        == json.loads(next((folders / name).glob("[rmp]*.json")).read_text())["guarantee"]
    )
    listed = (folders / name / "SHA256SUMS").read_bytes()
    assert found["digest"] == f"sha256:{hashlib.sha256(listed).hexdigest()}"


def test_all_mechanisms_are_covered(folders):
    """The verified folders contain a record of every mechanism in the registry."""
    records = [path for name in ALL for path in (folders / name).glob("*.json")]
    found = {json.loads(path.read_text())["plan"]["mechanism"] for path in records}
    assert found == {each.name for each in MECHANISMS}


def test_the_verify_command_prints_text_or_json(folders, capsys):
    """The text lists the verified files, the repeated plans and the total."""
    assert main(["verify", str(folders / "default")]) == 0
    text = capsys.readouterr().out
    assert "7 files as saved: counts.json, counts.parquet, release.json, release.parquet, report.html" in text
    assert text.count("planned again with the same settings, all numbers agree: (4, 1e-07)-DP") == 3
    parts = [vp.load(folders / "default", kind).guarantee for kind in (vp.Release, vp.Counts, vp.Top)]
    total = total_of([(each, None) for each in parts])
    assert f"All results together, if they are from the same users: {total.adaptive},\n" in text
    assert f"  {total.if_fixed}.\n" in text
    assert main(["verify", str(folders / "default"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["results"]) == 3


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs sha256sum")
def test_sha256sum_reads_the_list(folders):
    """`sha256sum` confirms all files of the folder, including the report."""
    done = subprocess.run(
        ["sha256sum", "--check", "SHA256SUMS"], cwd=folders / "default", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "report.html: OK" in done.stdout


@pytest.fixture
def copy(folders, tmp_path):
    """Return a copy of a saved folder, for tests that change it."""
    shutil.copytree(folders / "default", tmp_path / "copy")
    return tmp_path / "copy"


def resummed(folder):
    """Write the checksums again, as an attacker would."""
    lines = [
        f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n"
        for each in sorted(folder.iterdir())
        if each.name != "SHA256SUMS"
    ]
    (folder / "SHA256SUMS").write_text("".join(lines))


@pytest.mark.parametrize("change", ["report", "added", "missing", "list"])
def test_changed_files_are_detected(copy, change):
    """`verify` reports a changed report (outside of the record), new and missing files, and a missing list."""
    if change == "report":
        (copy / "report.html").write_text((copy / "report.html").read_text().replace("at most", "about"))
    elif change == "added":
        (copy / "more.txt").write_text("x")
    else:
        (copy / ("SHA256SUMS" if change == "list" else "report.html")).unlink()
    with pytest.raises(ReleaseError, match=r"differs since|was added since|is missing since|is missing, so") as caught:
        verify(copy)
    assert (change == "list") == ("SHA256SUMS is missing" in str(caught.value))


@pytest.mark.parametrize("content", [b"", b"abc\n", b"\xff\xfe", b"0 *release.json\n"])
def test_a_list_of_another_format_is_rejected(copy, content):
    """An invalid list of checksums raises an error with a message but without a traceback."""
    (copy / "SHA256SUMS").write_bytes(content)
    with pytest.raises(ReleaseError, match=r"SHA256SUMS must list a checksum and a name"):
        verify(copy)


def test_an_added_folder_is_detected(copy):
    """A folder among the files is reported as added, but not read as a file."""
    (copy / "more").mkdir()
    with pytest.raises(ReleaseError, match="was added since"):
        verify(copy)


@pytest.mark.parametrize("name", ["DPNE", "TrieHH"])
def test_a_published_algorithm_is_reported_as_not_planned_again(tmp_path, name):
    """The error does not state that the numbers are wrong."""
    table = {"who": list(range(3000)), "what": ["thank you"] * 3000}
    release = getattr(vp.papers, name)().release(vp.read(table, user="who", text="what"), BUDGET)
    release.save(tmp_path / "paper")
    with pytest.raises(ReleaseError, match=r"cannot plan .*`vp\.papers`.*as they were saved"):
        verify(tmp_path / "paper")


def test_a_report_with_another_compression_is_accepted(copy):
    """`verify` compares the unpacked grams of the page instead of their compressed bytes."""
    page = copy / "report.html"
    again = lambda found: b64encode(zlib.compress(zlib.decompress(b64decode(found[0])), 1)).decode()  # noqa: E731
    text = re.sub('(?<=id="grams">)[A-Za-z0-9+/=]+', again, page.read_text())
    assert text != page.read_text()
    page.write_text(text)
    resummed(copy)
    verify(copy)
    page.write_text(text.replace('id="grams">', 'id="grams">x'))
    resummed(copy)
    with pytest.raises(ReleaseError, match="the report is not the one"):
        verify(copy)


@pytest.mark.parametrize("name", ["default", "phrases", "found", "hitters"])
def test_a_forged_report_is_detected(folders, tmp_path, name):
    """`verify` detects a forged report even with new checksums, because the result determines the report."""
    copy = tmp_path / "copy"
    shutil.copytree(folders / name, copy)
    page = copy / "report.html"
    forged = re.sub(r"\([0-9.]+, [0-9e.-]+\)-DP", "(1, 1e-07)-DP", page.read_text(), count=1)
    assert forged != page.read_text()
    page.write_text(forged)
    resummed(copy)
    with pytest.raises(ReleaseError, match="the report is not the one that the result gives"):
        verify(copy)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("release.json", lambda record: record["guarantee"].update(epsilon=1.0)),
        ("release.json", lambda record: record["guarantee"]["spend"].update(mu=0.1)),
        ("release.json", lambda record: record.update(statement="(1, 1e-07)-DP, one user added or removed")),
        ("counts.json", lambda record: record.update(total="(1, 1e-07)-DP")),
        ("release.json", lambda record: record["plan"].update(epsilon=1.0)),
        ("release.json", lambda record: record["plan"].update(threshold=1.0)),
        ("release.json", lambda record: record["plan"].update(max_items_per_user=200)),
        ("release.json", lambda record: record["plan"].update(max_items_per_user="many")),
        ("release.json", lambda record: record["plan"]["passes"][3].update(scale=0.5)),
        ("release.json", lambda record: record["plan"].update(mechanism="a mechanism")),
        ("counts.json", lambda record: record["plan"].update(sigma=0.1)),
        ("top.json", lambda record: record["guarantee"].update(delta=1e-12)),
    ],
)
def test_forged_numbers_are_detected(copy, name, change):
    """`verify` detects forged numbers even with new checksums."""
    record = json.loads((copy / name).read_text())
    change(record)
    (copy / name).write_text(json.dumps(record))
    resummed(copy)
    with pytest.raises(ReleaseError):
        verify(copy)


@pytest.mark.parametrize("kind", ["words", "measurement", "screening", "vote", "second chance"])
def test_forged_planned_noise_of_phrases_is_detected(folders, tmp_path, kind):
    """Each row of a plan is compared, so a forged number is detected even if the report contains it."""
    copy = tmp_path / "copy"
    shutil.copytree(folders / "phrases", copy)
    record = json.loads((copy / "release.json").read_text())
    [*_, row] = [row for row in record["plan"]["passes"] if row["pass"] == kind]
    row["sigma"] /= 2
    (copy / "release.json").write_text(json.dumps(record))
    sums = {**record["checksums"], "release.json": checksum((copy / "release.json").read_bytes())}
    (copy / "report.html").write_bytes(vp.load(copy)._page(sums))
    resummed(copy)
    with pytest.raises(ReleaseError, match=r"release\.json: `?passes"):
        verify(copy)


def of_two(part):
    """Return a change that replaces a part of the record with the same part of another entry."""
    return lambda record, other: record.update({part: other[part]})


def with_limit_of_more(record, _):
    """Give the plan a limit that only the entry of parts has, together with the error and the bound for this limit."""
    rows = [{**row, "limit": 4} if row["pass"] == "more" else row for row in record["plan"]["passes"]]
    plan = plan_again({**record["plan"], "passes": rows}, None)
    record.update(plan=plan.to_dict(), error=plan.error)


def with_passes_of_parts(record, _):
    """Replace the transcript with the passes of parts, although the certificate contains rounds."""
    with_limit_of_more(record, _)
    record["transcript"] = [{"pass": name} for name in ("classes", "few", "sizes", "more", "rest")]
    record["transcript"][3]["limit"] = 4


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("one key", with_limit_of_more),
        ("six keys", with_passes_of_parts),
        ("one key", of_two("plan")),
        ("six keys", of_two("plan")),
        ("one key", of_two("transcript")),
        ("six keys", of_two("transcript")),
        ("one key", of_two("certificate")),
        ("one key", of_two("error")),
        ("one key", lambda record, _: record["certificate"]["numbers"].update(chosen=2)),
        ("one key", lambda record, _: record["certificate"]["numbers"].pop("chosen")),
        ("six keys", lambda record, _: record["plan"].update(chosen=7)),
        ("one key", lambda record, _: record["plan"].update(chosen=None, reach=None)),
        ("one key", lambda record, _: record["transcript"].append({"pass": "numbers", "limit": 1})),
        ("one key", lambda record, _: record.update(transcript=[])),
        ("six keys", lambda record, _: record.update(error=0.5)),
        ("six keys", lambda record, _: record["transcript"][-2]["certificate"]["numbers"]["menu"][0].update(sigma=0.1)),
    ],
)
def test_contents_of_another_entry_are_detected(folders, tmp_path, name, change):
    """The plan, the certificate, the transcript and the error of keys must belong to the same chosen entry."""
    copy = tmp_path / "copy"
    shutil.copytree(folders / name, copy)
    record, other = (json.loads((folders / each / "profile.json").read_text()) for each in (name, "two keys"))
    change(record, other)
    (copy / "profile.json").write_text(json.dumps(record))
    try:
        sums = {**record["checksums"], "profile.json": checksum((copy / "profile.json").read_bytes())}
        (copy / "report.html").write_bytes(vp.load(copy)._page(sums))
    except LookupError:
        pass  # No report can be created for such a plan.
    resummed(copy)
    with pytest.raises(ReleaseError, match=r"profile\.json: "):
        verify(copy)


def of_cover(**numbers):
    """Return a function that changes the sums of other rows in every set."""
    return lambda record, _: [each.update(numbers) for each in record["cover"].values()]


def in_table(change):
    """Return a function that applies a change to the columns of the table, which are lists."""
    return lambda _, columns: change(columns)


FORGED = {
    "error of the cover": of_cover(error=1e-3),
    "sums between the multiples": of_cover(other=0.3),
    "no cover": lambda record, _: record.update(cover={}),
    "cover of another set": lambda record, _: record["cover"].update(other=dict(covered=1.0, other=1.0, error=1.0)),
    "no transcript": lambda record, _: record.pop("transcript"),
    "other columns": lambda record, _: record["columns"][0].update(name="other"),
    "count below the noise": in_table(lambda columns: columns["users"].__setitem__(0, 0)),
    "key twice": in_table(lambda columns: [each.append(each[0]) for each in columns.values()]),
    "set outside of the plan": in_table(lambda columns: columns["set"].__setitem__(0, 7)),
    "margin below its cell": in_table(lambda columns: columns["users"].__setitem__(columns["set"].index(1), 30)),
}


def of_transcript(change):
    """Return a function that applies a change to the transcript, which is a list of passes."""
    return lambda record, _: change(record["transcript"])


FORGED_PROFILE = {
    "no counts in the transcript": of_transcript(lambda passes: passes.pop(-2)),
    "no round in the transcript": of_transcript(lambda passes: passes.pop(2)),
    "cover twice": of_transcript(lambda passes: passes.append(passes[-1])),
    "counts without a certificate": of_transcript(lambda passes: passes[-2].pop("certificate")),
    "other error of the counts": lambda record, _: record.update(error=record["error"] / 2),
    "mark of a column without a list": in_table(lambda columns: columns["known"].__setitem__(-1, True)),
    "more marks than listed values": in_table(
        lambda columns: columns["known"].__setitem__(slice(None), [number == 0 for number in columns["set"]])
    ),
    "sizes of other lists": lambda record, _: record["plan"]["known"]["columns"].update(what=9),
    "joint value without its single value": in_table(
        lambda columns: columns["item"].__setitem__(columns["set"].index(2), "nobody|2024")
    ),
    "cover without a value": in_table(lambda columns: [each.__delitem__(slice(3, None)) for each in columns.values()]),
}


@pytest.fixture(scope="module")
def with_list(tmp_path_factory):
    """Return the folder of a profile with a list, a column and joint values."""
    path = tmp_path_factory.mktemp("lists") / "list"
    table = pl.DataFrame({"who": range(3000), "what": ["a", "b", "c"] * 1000, "year": [2024, 2025] * 1500})
    how = {"columns": ["what", "year"], "joint": "pairs", "known": {"what": ["a", "z"]}}
    vp.profile(table, user="who", budget=BUDGET, **how).save(path)
    verify(path)
    return path


@pytest.fixture(scope="module")
def with_margin(tmp_path_factory):
    """Return the folder of a release of cells and margins with one noisy number per key."""
    path = tmp_path_factory.mktemp("margins") / "margins"
    table = pl.DataFrame({"who": range(3000), "key": ["a", "b", "c"] * 1000, "year": [2024, 2025] * 1500})
    vp.profile(table, user="who", joint=[("key", "year"), ("key",)], budget=BUDGET).save(path)
    verify(path)
    return path


@pytest.mark.parametrize(
    ("source", "change"),
    [("with_margin", change) for change in FORGED.values()]
    + [("with_list", change) for change in FORGED_PROFILE.values()],
    ids=[*FORGED, *FORGED_PROFILE],
)
def test_impossible_contents_are_detected(request, tmp_path, source, change):
    """Cover, keys, marks and counts must be possible for the plan, even with new checksums and a new report."""
    copy = tmp_path / "copy"
    shutil.copytree(request.getfixturevalue(source), copy)
    record = json.loads((copy / "profile.json").read_text())
    table = pq.read_table(copy / "profile.parquet")
    columns = table.to_pydict()
    change(record, columns)
    pq.write_table(pa.table(columns, schema=table.schema), copy / "profile.parquet")
    record["checksums"]["profile.parquet"] = checksum((copy / "profile.parquet").read_bytes())
    (copy / "profile.json").write_text(json.dumps(record))
    try:
        sums = {**record["checksums"], "profile.json": checksum((copy / "profile.json").read_bytes())}
        (copy / "report.html").write_bytes(vp.load(copy)._page(sums))
    except (LookupError, ReleaseError):
        pass  # No report can be created for such contents.
    resummed(copy)
    with pytest.raises(ReleaseError, match=r"was changed after|is not the one that the settings give|malformed"):
        verify(copy)


@pytest.mark.parametrize("name", ["default", "phrases", "hitters", "alphabet", "profile"])
def test_a_missing_transcript_is_detected(folders, tmp_path, name):
    """Every release has passes, so a record without them is forged."""
    copy = tmp_path / "copy"
    shutil.copytree(folders / name, copy)
    path = next(copy.glob("[rmp]*.json"))
    record = json.loads(path.read_text())
    record.pop("transcript")
    path.write_text(json.dumps(record))
    resummed(copy)
    with pytest.raises(ReleaseError, match="the transcript"):
        verify(copy)
