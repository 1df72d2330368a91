"""Tests of `Release.save` and `load`, including round trips and rejected folders and files."""

import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxpop
from voxpop.errors import ReleaseError
from voxpop.mechanisms.set_union.mechanism import Items
from voxpop.privacy.guarantee import Guarantee
from voxpop.release.release import Release
from voxpop.release.result import StoredPlan, load


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def change_record(folder, **changes):
    record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    (folder / "release.json").write_text(json.dumps(record | changes), encoding="utf-8")


@pytest.fixture
def saved(words, tmp_path):
    words.save(tmp_path / "words")
    return tmp_path / "words"


def test_values_are_the_same_after_a_round_trip(words, saved):
    """A loaded release equals the saved release, including the numbers of its plan."""
    again = load(saved)
    assert again == words
    assert again.plan.sigma == words.plan.sigma
    assert again.to_arrow().equals(words.to_arrow())


@given(st.sets(st.text(st.characters(codec="utf-8")), max_size=20))
@settings(max_examples=30)
def test_any_strings_are_loaded_unchanged(tmp_path_factory, items):
    """Any set of strings is loaded unchanged, in the order of its bytes."""
    import pyarrow as pa

    folder = tmp_path_factory.mktemp("any") / "words"
    in_order = sorted(items, key=str.encode)
    Release.from_items(pa.array(in_order, pa.string()), StoredPlan({}), Guarantee(1, 0.0)).save(folder)
    assert load(folder).to_list() == in_order


def test_a_plan_is_saved_with_its_numbers(words, tmp_path):
    """The numbers of a plan are loaded unchanged, and the loaded plan has a text."""
    plan = Items(max_items_per_user=10).plan(voxpop.Budget(3, 1e-6))
    Release(words.grams, plan, plan.guarantee).save(tmp_path / "words")
    again = load(tmp_path / "words")
    assert again.plan.to_dict() == plan.to_dict()
    assert (again.plan.threshold, again.guarantee) == (plan.threshold, plan.guarantee)
    assert "threshold" in str(again.plan)


def test_a_folder_contains_four_files_and_only_public_numbers(saved):
    """The files are the checksums, the grams, the report, and a record with exactly the listed entries.

    No temporary folder remains.
    """
    assert sorted(contents(saved)) == ["SHA256SUMS", "release.json", "release.parquet", "report.html"]
    record = json.loads((saved / "release.json").read_text(encoding="utf-8"))
    assert set(record) == {
        "id",
        "format",
        "format_version",
        "voxpop_version",
        "statement",
        "guarantee",
        "plan",
        "keys",
        "checksums",
    }
    assert record["voxpop_version"] == voxpop.__version__
    assert os.listdir(saved.parent) == ["words"]


def test_bytes_depend_only_on_the_release(words, saved, tmp_path):
    """Saving again to the same or another folder and saving a loaded release give the same bytes."""
    first = contents(saved)
    load(saved).save(tmp_path / "again")
    words.save(saved)
    assert contents(saved) == contents(tmp_path / "again") == first


def test_a_seeded_release_is_marked(release_of, tmp_path):
    """The record of a release made with a seed is marked NOT PRIVATE, and so is the loaded release."""
    release_of("tea", private=False).save(tmp_path / "words")
    record = json.loads((tmp_path / "words" / "release.json").read_text(encoding="utf-8"))
    assert record["guarantee"]["private"] is False
    assert record["statement"].startswith("NOT PRIVATE")
    assert "NOT PRIVATE" in repr(load(tmp_path / "words"))


def test_an_earlier_release_is_replaced(saved, release_of):
    """With `overwrite=True`, saving replaces the whole earlier release."""
    release_of("oat").save(saved, overwrite=True)
    assert list(load(saved)) == ["oat"]
    assert os.listdir(saved.parent) == ["words"]


def test_a_release_is_replaced_only_on_request(saved, release_of):
    """Without `overwrite=True`, `save` does not replace another release, because that release used budget."""
    before = contents(saved)
    with pytest.raises(ReleaseError, match=r"already contains a release, which cost a budget.*overwrite=True"):
        release_of("oat").save(saved)
    assert contents(saved) == before


def test_save_creates_parents_and_accepts_an_empty_folder(words, tmp_path):
    """`save` creates missing parents and accepts an empty folder."""
    words.save(tmp_path / "a" / "b")
    (tmp_path / "empty").mkdir()
    words.save(str(tmp_path / "empty"))
    assert load(tmp_path / "a" / "b") == load(str(tmp_path / "empty")) == words


def test_links_are_followed(saved, release_of, tmp_path):
    """Saving to a symbolic link replaces its target and keeps the link."""
    (tmp_path / "link").symlink_to(saved)
    release_of("oat").save(tmp_path / "link", overwrite=True)
    assert (tmp_path / "link").is_symlink()
    assert list(load(saved)) == ["oat"]


def test_save_never_replaces_other_folders(words, tmp_path):
    """`save` rejects a folder of other files and leaves it unchanged."""
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ReleaseError, match="is not a release, so it is not replaced"):
        words.save(tmp_path)
    assert contents(tmp_path) == {"notes.txt": b"mine"}


def test_save_never_deletes_other_files_in_a_release_folder(saved, words):
    """`save` does not replace a release folder that contains another file."""
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(ReleaseError, match=r"also 'notes\.txt'"):
        words.save(saved)
    assert (saved / "notes.txt").read_text() == "mine"


def test_a_file_is_rejected_as_a_folder(words, tmp_path):
    """`save` rejects a path that is a file, or has a file as a parent."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ReleaseError, match="is a file"):
        words.save(tmp_path / "file")
    with pytest.raises(ReleaseError, match="is a file"):
        words.save(tmp_path / "file" / "words")


def test_the_current_folder_is_rejected(words, tmp_path, monkeypatch):
    """`save` does not replace the current working directory."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ReleaseError, match="the working directory"):
        words.save(".")


def test_an_unwritable_folder_is_rejected(words, tmp_path, monkeypatch):
    """`save` reports missing permission before it writes anything."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(ReleaseError, match="you may not write"):
        words.save(tmp_path / "words")


def test_load_reports_a_missing_folder(tmp_path):
    """The error states that the folder does not exist."""
    with pytest.raises(ReleaseError, match="does not exist"):
        load(tmp_path / "nowhere")


def test_load_rejects_other_folders_and_files(tmp_path):
    """`load` rejects a folder without a record, and a file."""
    with pytest.raises(ReleaseError, match=r"contains no release: release\.json"):
        load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ReleaseError, match="it is a file"):
        load(tmp_path / "file")


@pytest.mark.parametrize("name", ["release.json", "release.parquet"])
@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_load_detects_truncation(saved, name, keep):
    """`load` reports a file that is truncated anywhere except at its final line break."""
    content = (saved / name).read_bytes().rstrip()
    (saved / name).write_bytes(content[:keep])
    with pytest.raises(ReleaseError, match="was changed or is damaged"):
        load(saved)


def test_load_detects_a_missing_table(saved):
    """`load` rejects a record without its table."""
    (saved / "release.parquet").unlink()
    with pytest.raises(ReleaseError, match=r"contains no release: release\.parquet"):
        load(saved)


def test_load_detects_one_changed_bit(saved):
    """The checksum detects a single changed bit."""
    content = bytearray((saved / "release.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (saved / "release.parquet").write_bytes(content)
    with pytest.raises(ReleaseError, match="checksum differs"):
        load(saved)


def test_load_detects_a_changed_table_with_a_matching_checksum(saved, tmp_path):
    """`load` rejects a file that is not a table of a release, even if its checksum in the record was changed too."""
    from voxpop.release.saving import checksum

    (saved / "release.parquet").write_bytes(b"not parquet")
    change_record(saved, checksums={"release.parquet": checksum(b"not parquet")})
    with pytest.raises(ReleaseError, match="changed after it was saved"):
        load(saved)


def test_load_rejects_another_format_version(saved):
    """The error contains the version of the file and the supported version."""
    change_record(saved, format_version=2)
    with pytest.raises(ReleaseError, match="format version 2; this voxpop reads 1"):
        load(saved)


@pytest.mark.parametrize("content", ["[]", "{}", '{"format": "other"}', "3"])
def test_load_rejects_other_json(saved, content):
    """`load` rejects JSON that voxpop did not write."""
    (saved / "release.json").write_text(content)
    with pytest.raises(ReleaseError, match="not written by voxpop"):
        load(saved)


@pytest.mark.parametrize("changes", [{"plan": None}, {"guarantee": 3}, {"checksums": {}}, {"guarantee": {"x": 1}}])
def test_load_rejects_an_incomplete_record(saved, changes):
    """`load` rejects a record without plan, guarantee or checksum."""
    change_record(saved, **changes)
    with pytest.raises(ReleaseError, match="was changed or is damaged"):
        load(saved)


def test_load_reads_one_release_while_another_is_saved(saved, words, release_of, monkeypatch):
    """`load` never mixes files of two releases. If the folder is replaced between reads, it reads all files again."""
    from voxpop.release.saving import ResultKind

    plain, reads = ResultKind._read, []

    def read_and_disturb(kind, source, name, folder):
        content = plain(kind, source, name, folder)
        reads.append(name)
        if len(reads) == 1:
            release_of("oat").save(saved, overwrite=True)
        return content

    monkeypatch.setattr(ResultKind, "_read", read_and_disturb)
    assert list(load(saved)) == ["oat"]
    assert len(reads) == 9  # `load` reads three files again, and then once more for the guarantees of all results.


def test_load_raises_an_error_if_a_folder_keeps_changing(saved, monkeypatch):
    """`load` raises an error, and does not loop forever, if the folder changes at every read."""
    from itertools import count

    from voxpop.release.saving import ResultKind

    numbers = count()
    monkeypatch.setattr(ResultKind, "_read", lambda *_: str(next(numbers)).encode())
    with pytest.raises(ReleaseError, match="several times"):
        load(saved)
