"""Tests that full disks, truncated files, too little memory and changing files cause helpful errors and no damage."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from faults import crashes
from support.look import load_engine, read_engine
from voxpop.errors import InputError, SourceError, no_thread_started
from voxpop.reading.columns import checked_users
from voxpop.reading.limited import memory

STARVED = """
import resource, sys
import voxpop as vp
from voxpop.cli import main
import numba, polars, pyarrow.csv, scipy.special
vp.read(polars.DataFrame({"who": [1], "text": ["warm up"]}), user="who", text="text")
size = int(open("/proc/self/statm").read().split()[0]) * 4096 + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (size, size))
sys.exit(main(sys.argv[2:]))
"""


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run Python code with the tests on the path."""
    path = str(Path(__file__).resolve().parent.parent)
    call = [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r}); {code}", *map(str, arguments)]
    return subprocess.run(call, capture_output=True, text=True)


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Limit the size of files that this process writes, so that writing fails as on a full disk."""
    import resource

    usual, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (usual, most))


def test_a_full_disk_during_spilling_is_reported(tmp_path, monkeypatch):
    """If the disk of the work folder is full, the error reports this and names the options that help."""
    work = tmp_path / "work"
    work.mkdir()
    limit = memory.MemoryLimit(memory.FIXED_MEMORY + (1 << 16), 1 << 16, work)
    monkeypatch.setattr(memory.MemoryLimit, "of", lambda *_: limit)
    rows, options = crashes.rows_of("old"), vp.ReadOptions(memory="any")
    vp.read(rows, user="who", text="text", options=options)  # compiled kernels are kept in files
    with full_disk(1 << 14), pytest.raises(SourceError, match=r"^a work file in .*--work-folder"):
        vp.read(rows, user="who", text="text", options=options)
    assert list(work.iterdir()) == []


def test_a_full_disk_during_saving_is_reported(tmp_path):
    """After a failed save, the old release and the old corpus are unchanged, and no other files remain."""
    release, corpus = crashes.release_of("old"), crashes.corpus_of("old")
    release.save(tmp_path / "r")
    corpus.save(tmp_path / "c")
    for new, folder, options in ((crashes.release_of("new"), "r", {"overwrite": True}), (corpus, "c", {})):
        with full_disk(1 << 10), pytest.raises(InputError, match="File too large"):
            new.save(tmp_path / folder, **options)
    assert vp.load(tmp_path / "r") == release
    assert load_engine(tmp_path / "c").vocabulary.equals(corpus.vocabulary)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "r"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that even root cannot write to")
def test_unwritable_folders_are_reported():
    """The error names the folder that cannot be written.

    For releases, the error is raised before any budget is spent.
    """
    with pytest.raises(InputError, match="/proc/"):
        crashes.release_of("old").save("/proc/nowhere/r")
    with pytest.raises(InputError, match="/proc/"):
        crashes.corpus_of("old").save("/proc/nowhere/c")
    with pytest.raises(InputError, match=r"a work file in /proc|written to /proc"):
        memory.MemoryLimit.of("1GiB", "/proc").file()


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_truncated_files_are_detected(tmp_path, ending):
    """A file that is truncated at any of forty places raises `SourceError` or is read up to its last complete row.

    A truncated Parquet file always raises the error. Other formats cannot always detect truncation.
    """
    whole, path = tmp_path / f"whole.{ending}", tmp_path / f"cut.{ending}"
    rows = pl.from_arrow(crashes.rows_of("old")).head(300)
    {"parquet": rows.write_parquet, "csv": rows.write_csv, "jsonl": rows.write_ndjson}[ending](whole)
    data = whole.read_bytes()
    for place in range(0, len(data), max(1, len(data) // 40)):
        path.write_bytes(data[:place])
        try:
            read_engine(path, user="who", text="text")
        except SourceError:
            continue
        assert ending != "parquet"


@pytest.mark.parametrize("change", ["longer", "other"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_file_that_changes_during_reading_is_rejected(tmp_path, monkeypatch, ending, change):
    """A file that is replaced or extended during reading is rejected, because the rows could mix both versions."""
    path, rows = tmp_path / f"rows.{ending}", pl.from_arrow(crashes.rows_of("old"))
    write = {"parquet": lambda t, p: t.write_parquet(p), "csv": lambda t, p: t.write_csv(p)}[ending]
    write(rows, path)

    def changing(batches, user):
        for each in checked_users(batches, user):  # the file changes before its end is read
            if change == "longer":
                with open(path, "ab") as file:
                    file.write(b"9,b\n")
            else:
                write(rows.reverse(), tmp_path / "next")
                (tmp_path / "next").rename(path)
            yield each

    monkeypatch.setattr("voxpop.engine.local.read.checked_users", changing)
    with pytest.raises(SourceError, match="changed while it was read"):
        read_engine([path], user="who", text="text")


@pytest.mark.parametrize("message", ["can't start new thread", "Failed to launch worker thread"])
def test_a_row_that_quotes_a_thread_error_is_not_reported_as_missing_memory(tmp_path, message):
    """Only the beginning of a reader's message can indicate a thread error, because the rest can quote a row."""
    assert no_thread_started(RuntimeError(message))
    assert no_thread_started(pa.ArrowException(f"Unknown error: {message}")) == message.startswith("Failed")
    (tmp_path / "t.csv").write_text(f"who,text\n1,a\n2,{message},b\n")
    with pytest.raises(SourceError, match="values"):
        vp.read(tmp_path / "t.csv", user="who", text="text", options=vp.ReadOptions(progress=False))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
@pytest.mark.parametrize("more", [1 << 25, 1 << 26, 1 << 27])
def test_too_little_memory_causes_a_helpful_error(tmp_path, more):
    """With too little address space, the command prints a clear error without a traceback.

    If glibc, polars or the C++ library of Arrow ends the process, standard error mentions memory or its `bad_alloc`.
    """
    size = 400_000
    pl.DataFrame({"who": range(size), "text": [f"w{n} x{n % 977} y" for n in range(size)]}).write_csv(
        tmp_path / "t.csv"
    )
    call = ["items", tmp_path / "t.csv", "--user", "who", "--text", "text", "--epsilon", 4, "--delta", 1e-7]
    done = run(STARVED, more, *call, "-o", tmp_path / "out")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    ended = "memory" in done.stderr.lower() or "std::bad_alloc" in done.stderr
    assert "--memory" in done.stderr if done.returncode == 6 else ended, done.stderr
    assert not (tmp_path / "out").exists()
