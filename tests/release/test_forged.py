"""Tests that loading, showing and verifying forged folders raises a Voxpop error within a bounded time."""

import json
import os
import shutil
import signal
import time

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voxpop as vp
from voxpop.errors import InputError
from voxpop.mechanisms.series.state import STATE_FILE
from voxpop.release.saving import checksum
from voxpop.release.verifying import verify

OPTIONS = vp.ReadOptions(progress=False)


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Return a folder with one result of each kind that can be loaded."""
    folder = tmp_path_factory.mktemp("originals")
    table = pl.DataFrame({"who": range(1500), "a": ["x", "y", "z"] * 500, "s": [["p", "q"]] * 1500})
    corpus = vp.read(table, user="who", items="a", options=OPTIONS)
    release = vp.Items(max_items_per_user=1).release(corpus, vp.Budget(4, 1e-7))
    release.save(folder / "release")
    release.count(corpus, vp.Budget(1, 1e-7)).save(folder / "release")
    corpus.save(folder / "corpus")
    vp.profile(table.select("who", "a"), user="who", budget=vp.Budget(4, 1e-7), options=OPTIONS).save(
        folder / "profile"
    )
    rows = vp.read(table, user="who", sequence="s", options=OPTIONS)
    vp.Sequences(alphabet=["p", "q"], max_length=4).release(rows, vp.Budget(4)).save(folder / "model")
    vp.Items().series(folder / "series", vp.Budget(2, 1e-7), nights=2)
    vp.Ledger(folder / "team.json").open("posts", vp.Budget(2, 1e-7), create=True)
    return folder


@pytest.fixture
def folder(originals, tmp_path):
    """Return a copy of the originals."""
    shutil.copytree(originals, tmp_path, dirs_exist_ok=True)
    return tmp_path


RECORDS = {
    "release/release.json": lambda folder: [vp.load(folder / "release"), verify(folder / "release")],
    "release/counts.json": lambda folder: [vp.load(folder / "release", vp.Counts), verify(folder / "release")],
    "profile/profile.json": lambda folder: [vp.load(folder / "profile"), verify(folder / "profile")],
    "model/model.json": lambda folder: [vp.load(folder / "model"), verify(folder / "model")],
    "corpus/corpus.json": lambda folder: vp.load_corpus(folder / "corpus"),
    "team.json": lambda folder: vp.Ledger(folder / "team.json").names,
}
DEEP = b"[" * 5000 + b"]" * 5000
CONTENTS = {
    "deep": lambda whole: DEEP,
    "deep objects": lambda whole: b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "deep inside": lambda whole: whole.rstrip()[:-1] + b', "x": ' + DEEP + b"}",
    "no object": lambda whole: b"[]",
    "null": lambda whole: b"null",
    "repeated": lambda whole: whole.rstrip()[:-1] + b', "format": "x"}',
    "NaN": lambda whole: whole.rstrip()[:-1] + b', "x": NaN}',
    "Infinity": lambda whole: whole.rstrip()[:-1] + b', "x": -Infinity}',
    "1e999": lambda whole: whole.rstrip()[:-1] + b', "x": 1e999}',
    "digits": lambda whole: whole.rstrip()[:-1] + b', "x": ' + b"9" * 5000 + b"}",
    "empty": lambda whole: b"",
    "bytes": lambda whole: b"\xff\xfe\x00",
}


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("record", RECORDS)
def test_invalid_records_are_rejected(folder, record, content):
    """Deep nesting, repeated names, infinite numbers and other unexpected JSON raise an `InputError`."""
    path = folder / record
    path.write_bytes(CONTENTS[content](path.read_bytes()))
    with pytest.raises(InputError):
        RECORDS[record](folder)


PIPES = [*RECORDS, "release/release.parquet", "model/grams.parquet", "profile/profile.parquet", "corpus/tokens.npy"]
PIPES += ["corpus/vocabulary.arrow", f"series/{STATE_FILE}"]
LOADED = {
    "release": lambda folder: vp.load(folder / "release"),
    "counts": lambda folder: vp.load(folder / "release", vp.Counts),
    "profile": lambda folder: vp.load(folder / "profile"),
    "model": lambda folder: vp.load(folder / "model"),
    "corpus": lambda folder: vp.load_corpus(folder / "corpus"),
    "series": lambda folder: vp.Items().series(folder / "series").night,
    "team.json": lambda folder: vp.Ledger(folder / "team.json").names,
}


@pytest.fixture
def alarm():
    """Fail after four minutes instead of waiting forever."""

    def late(*_):
        raise AssertionError("it waits for a pipe, or reads a device")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(240)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "device"])
@pytest.mark.parametrize("place", PIPES)
@pytest.mark.usefixtures("alarm")
def test_pipes_and_devices_are_not_read(folder, place, kind):
    """Pipes and devices are not read, because a pipe would wait forever for a writer and a device has no end."""
    path = folder / place
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(folder / "pipe")
        path.symlink_to(folder / "pipe")
    with pytest.raises(InputError):
        LOADED["counts" if "counts" in place else place.split("/")[0]](folder)


def test_a_saved_regular_expression_runs_only_for_completions_with_a_time_limit(folder, monkeypatch):
    """Loading and showing do not compile the expression. A completion stops it after the permitted time."""
    from voxpop.reading import one_text

    path = folder / "release" / "release.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "token_source": "regex:(a+)+$"}))
    release, begun = vp.load(folder / "release"), time.perf_counter()
    assert release._repr_html_()
    assert release.report().html
    assert release.complete("aaa") == []
    monkeypatch.setattr(one_text, "_PATIENCE", 0.5)
    with pytest.raises(InputError, match=r"takes more than 0\.5 s"):
        release.complete("a" * 60 + "!")
    assert time.perf_counter() - begun < 60
    path.write_text(json.dumps({**json.loads(path.read_text()), "token_source": "regex:("}))
    with pytest.raises(InputError, match="it is damaged"):
        vp.load(folder / "release").complete("tea")


def test_a_small_file_with_too_many_rows_is_rejected(folder, monkeypatch):
    """A table of a few kilobytes with millions of rows is rejected before it is read."""
    path = folder / "release" / "release.parquet"
    rows = 10_000_000
    schema = pa.schema([pa.field("gram", pa.string()), pa.field("length", pa.int32())])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for _ in range(20):
            one = pa.repeat(pa.scalar(7, pa.int32()), rows // 20)
            writer.write_table(pa.table([pa.nulls(rows // 20, pa.string()), one], schema=schema))
    assert path.stat().st_size < 1 << 20
    record = folder / "release" / "release.json"
    content = json.loads(record.read_text())
    content["checksums"]["release.parquet"] = checksum(path.read_bytes())
    record.write_text(json.dumps(content))
    reads, read = [], pq.ParquetFile.read
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *given, **named: reads.append(1) or read(*given, **named))
    with pytest.raises(InputError, match="was changed after it was saved"):
        vp.load(folder / "release")
    assert reads == []


@pytest.mark.parametrize("guarantee", [None, {"epsilon": 1, "delta": "x"}, {"epsilon": 1, "delta": 0, "spend": [1]}])
def test_counts_without_a_readable_guarantee_are_rejected(folder, guarantee):
    """The counts are part of the total guarantee, so loading the release also detects that the counts are damaged."""
    record = folder / "release/counts.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"guarantee": guarantee}))
    for call in (vp.load, verify, lambda each: vp.load(each, vp.Counts)):
        with pytest.raises(vp.errors.ReleaseError):
            call(folder / "release")
