"""Tests that marked words, user names and numbers in private data never appear in any output except a release."""

import json
import logging
import os
import stat
import subprocess
import sys
import traceback
from pathlib import Path

import polars as pl
import pytest

import voxpop as vp
from support.sources import all_forms
from voxpop.errors import VoxpopError

WORD, USER, NUMBER = "kanarienvogel", "zaunkoenig", 918273645
MARKS = [WORD, USER, str(NUMBER), f"{NUMBER:,}", hex(NUMBER)]
SHARED = [f"tea{number}" for number in range(30)]
LOUD = """
import json, logging, sys
logging.basicConfig(level=0, stream=sys.stderr)
logging.captureWarnings(True)
from voxpop.cli import main
from voxpop.mechanisms.sequences import queries
queries.MODELS, queries.SESSIONS, queries.SESSIONS_EACH = 4, 2000, 100  # the charts of a report, from fewer sessions
sys.exit(max([main(arguments) for arguments in json.loads(sys.argv[1])]))
"""
RELEASING = {
    "items": ["items", "--text", "text", "--epsilon", 4, "--delta", 1e-6],
    "ngrams": ["ngrams", "--text", "text", "--epsilon", 4, "--delta", 1e-6, "--max-length", 3],
    "sequences": ["sequences", "--text", "text", "--epsilon", 4, "--alphabet", ",".join(SHARED), "--synthesize", 9],
    "heavy-hitters": ["heavy-hitters", "--text", "text", "--epsilon", 8, "--delta", 1e-4, "--max-length", 4],
}


def rows() -> pl.DataFrame:
    """Return texts that many users share, and one user with marks as name and text."""
    texts = [" ".join(SHARED[number % 7 :]) for number in range(400)]
    names = [f"user {number}" for number in range(400)]
    return pl.DataFrame({"who": [*names, USER], "text": [*texts, f"{WORD} {NUMBER} {WORD}{NUMBER}"]})


def every_byte(folder: Path) -> bytes:
    """Return all names and contents in a folder, including the rows of Parquet files as text."""
    found = [json.dumps(os.listdir(folder)).encode()]
    for path in folder.rglob("*"):
        found.append(str(path).encode())
        if path.is_file():
            found.append(path.read_bytes())
            if path.suffix == ".parquet":
                found.append(json.dumps(pl.read_parquet(path).to_dicts(), default=str).encode())
    return b"\n".join(found)


def assert_unmarked(what: bytes) -> None:
    """Check that bytes contain no mark, neither as text nor as a binary number."""
    for mark in MARKS:
        assert mark.encode() not in what.lower(), mark
    assert NUMBER.to_bytes(8, "little") not in what


def run(folder: Path, calls: list[list[str]]) -> subprocess.CompletedProcess[bytes]:
    """Run commands in a new process, with all loggers at the lowest level and a separate folder for temporary files."""
    (folder / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(folder / "temporary"), "POLARS_VERBOSE": "1", "COLUMNS": "200"}
    call = [sys.executable, "-c", LOUD, json.dumps(calls)]
    return subprocess.run(call, capture_output=True, env=environment, cwd=folder)


@pytest.mark.slow
@pytest.mark.jit  # runs another process, which coverage does not measure
def test_a_release_contains_no_marked_string(tmp_path):
    """Release folders, reports, standard output and error, logs at every level and temporary files contain no mark."""
    source = tmp_path / "source"
    source.mkdir()
    rows().write_parquet(source / "rows.parquet")
    calls = []
    for name, (first, *options) in RELEASING.items():
        memory = ["--memory", "896MiB"] if name in ("items", "ngrams") else []
        calls.append([first, source / "rows.parquet", "--user", "who", *options, *memory, "-o", tmp_path / name])
    done = run(tmp_path, [[str(each) for each in call] for call in calls])
    assert done.returncode == 0, done.stderr
    for name in RELEASING:
        assert every_byte(tmp_path / name)
        assert_unmarked(every_byte(tmp_path / name))
    assert_unmarked(every_byte(tmp_path / "temporary") + done.stdout + done.stderr)
    assert list((tmp_path / "temporary").iterdir()) == []


def broken(folder: Path, kind: str) -> tuple[object, dict[str, str]]:
    """Return a source that contains the marks and cannot be read, with the names of its columns."""
    row = f"{USER},{WORD} {NUMBER}"
    text = {"user": "who", "text": "text"}
    made: dict[str, tuple[str, bytes]] = {
        "wide": ("a.csv", f"who,text\n{row},{row}\n{row}\n".encode()),
        "latin": ("a.csv", f"who,text\n{row}".encode() + b"\xe9\n"),
        "header": ("a.csv", f"{USER}\xe9".encode("latin-1") + b",text\n"),
        "json": (
            "a.jsonl",
            f'{{"who": "{USER}", "text": "{WORD}"}}\n{{"who": "{USER}", "text": {{"{WORD}": {NUMBER}}}}}\n'.encode(),
        ),
        "cut": ("a.jsonl", f'{{"who": "{USER}", "text": "{WORD}"}}\n{{"who": "{USER}", "te'.encode()),
        "gzip": ("a.csv.gz", f"who,text\n{row}\n".encode()),
        "parquet": ("a.parquet", row.encode() * 9),
        "nobody": ("a.csv", f"who,text\n{row}\n,{WORD}\n".encode()),
        "float": ("a.jsonl", f'{{"who": [{NUMBER}.5], "text": "{WORD}"}}\n'.encode()),
    }
    if kind == "kinds":
        pl.DataFrame({"who": [NUMBER], "text": [WORD]}).write_parquet(folder / "a.parquet")
        pl.DataFrame({"who": [USER], "text": [WORD]}).write_parquet(folder / "b.parquet")
        return folder, text
    if kind == "lists":
        pl.DataFrame({"who": [USER], "text": [[1.5, float(NUMBER)]]}).write_parquet(folder / "a.parquet")
        return folder, {"user": "who", "tokens": "text"}
    name, data = made[kind]
    (folder / name).write_bytes(data)
    return folder / name, text


BROKEN = ["wide", "latin", "header", "json", "cut", "gzip", "parquet", "nobody", "float", "kinds", "lists"]


PRIVATE = [(USER, f"{WORD} {NUMBER}", f"{WORD}{NUMBER}"), (f"{USER}2", WORD, USER)] * 3
UNDECLARED = {name: form for name, form in all_forms() if not form.declared}
WRONG = {
    "types of items": {"user": "who", "items": "what", "types": {"what": "int64"}},
    "types of users": {"user": "who", "text": "what", "types": {"who": "timestamp"}},
    "types of times": {"user": "who", "sequence": "what", "order": "at", "types": {"at": "decimal(12, 2)"}},
    "times": {"user": "who", "sequence": "what", "order": "at"},
    "lists": {"user": "who", "tokens": "what"},
    "a missing column": {"user": "who", "text": "kanarienvoge"},
    "a missing user": {"user": "zaunkoeni", "text": "what"},
    "csv of another kind": {"user": "who", "text": "what", "csv": vp.CSV(encoding="utf-32")},
    "a session": {"user": "who", "sequence": "what", "order": "at", "session_gap": "30min"},
    "no types": {"user": "who", "text": "what", "types": [WORD]},
    "a tokenizer that fails": {"user": "who", "text": "what", "tokenizer": lambda texts: {}[texts[0]]},
    "a tokenizer that returns texts": {"user": "who", "text": "what", "tokenizer": lambda texts: texts[0]},
}
SHAPES = {
    "a text": f"{WORD} is {USER}",
    "a word": WORD,
    "a list of texts": [f"{WORD} {NUMBER}", USER],
    "a tuple of texts": (WORD, USER),
    "a dictionary of users": {USER: [WORD], f"{USER}2": [str(NUMBER)]},
    "a dictionary of texts": {USER: WORD},
    "rows of users": [{USER: WORD}, {f"{USER}2": str(NUMBER)}],
    "lists of lists": [[USER, WORD]],
    "pairs": iter([(USER, WORD)]),
    "a set": {WORD, USER},
    "bytes": WORD.encode(),
    "nothing": None,
    "rows that hold objects": [{"who": USER, "what": {WORD: NUMBER}}],
    "users that are lists": [{"who": [USER], "what": WORD}],
    "half of a pair": [{"who": USER, "what": f"{WORD}\ud800"}],
    "an address": f"https://localhost/{WORD}",
    "SQL": f"select {WORD} from {USER}",
    "a long text": f"{WORD} " * 2000,
}


def said_by(error: BaseException, log: str, output: str) -> bytes:
    """Return the text of an exception, of its causes and contexts, of the log and of the output."""
    said, waiting = [log, output, *traceback.format_exception(error)], [error]
    while waiting:
        each = waiting.pop()
        said += [str(each), repr(each), repr(each.args), repr(vars(each)), repr(getattr(each, "object", b""))]
        said += [repr(getattr(each, "doc", ""))]
        waiting += [other for other in (each.__cause__, each.__context__) if other is not None]
    # Lines of this file that a traceback quotes are code and not data.
    return "\n".join(line for line in "\n".join(said).splitlines() if not line.startswith("    ")).encode()


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", UNDECLARED)
def test_no_source_quotes_its_contents(tmp_path, caplog, capfd, name, wrong):
    """For every source of the registry and every wrong call, errors, logs and output contain no mark."""
    caplog.set_level(0)
    source = UNDECLARED[name].make(PRIVATE, tmp_path)
    try:
        vp.read(source, options=vp.ReadOptions(progress=True), **WRONG[wrong])
    except VoxpopError as error:
        logging.getLogger("test").error("failed", exc_info=error)
        output = "".join(capfd.readouterr())
        assert_unmarked(said_by(error, caplog.text, output).replace(b'kanarienvoge"', b"").replace(b'zaunkoeni"', b""))
    else:
        assert_unmarked((caplog.text + "".join(capfd.readouterr())).encode())


@pytest.mark.parametrize("shape", SHAPES)
def test_no_wrong_source_is_quoted(caplog, capfd, shape):
    """Texts, user ids, and lists of these are not quoted if they are passed instead of a table."""
    caplog.set_level(0)
    with pytest.raises(VoxpopError) as caught:
        vp.read(SHAPES[shape], user="who", text="what")
    logging.getLogger("test").error("failed", exc_info=caught.value)
    assert_unmarked(said_by(caught.value, caplog.text, "".join(capfd.readouterr())))


def test_counts_of_rows_are_rounded(capsys):
    """Counts of rows are rounded, because saved notebooks keep printed counts.

    The option `exact=True` is for callers who are allowed to see exact counts.
    """
    rows = [{"who": number, "what": None if number % 3 else "tea"} for number in range(1234)]
    for exact in (False, True):
        options = vp.ReadOptions(progress=True, exact=exact)
        vp.read(rows, user="who", items="what", options=options)
        said = capsys.readouterr().err
        assert ("1,234" in said) is exact
        assert ("about 1,200 rows" in said) is not exact


@pytest.mark.parametrize("kind", BROKEN)
def test_an_exception_contains_no_mark(tmp_path, kind, caplog):
    """The messages, arguments and logs of an exception and of its causes contain no mark."""
    source, columns = broken(tmp_path, kind)
    caplog.set_level(0)
    with pytest.raises(VoxpopError) as caught:
        vp.read(source, **columns)
    logging.getLogger("test").error("failed", exc_info=caught.value)
    said, error = [caplog.text], caught.value
    waiting = [error]
    while waiting:
        each = waiting.pop()
        said += [str(each), repr(each), repr(each.args), repr(vars(each)), repr(getattr(each, "object", b""))]
        waiting += [other for other in (each.__cause__, each.__context__) if other is not None]
    assert_unmarked("\n".join(said).encode())


@pytest.mark.parametrize("kind", BROKEN)
def test_the_output_of_a_rejected_run_contains_no_mark(tmp_path, voxpop, kind):
    """The command line prints one line without a mark and no traceback."""
    source, columns = broken(tmp_path, kind)
    options = [part for name, value in columns.items() for part in (f"--{name}", value)]
    done = voxpop("items", source, *options, "--epsilon", 1, "--delta", 1e-7, "-o", tmp_path / "out")
    assert_unmarked(done.complaint.encode())


def test_the_message_of_an_exception_of_a_library_is_omitted(tmp_path, voxpop, monkeypatch):
    """The messages of an exception and its causes are omitted, because they can quote data. The frames remain."""

    def fail(*_: object) -> None:
        try:
            raise KeyError(USER)
        except KeyError as error:
            raise ValueError(f"{WORD} is not in {NUMBER}") from error

    monkeypatch.setattr("voxpop.mechanisms.set_union.releasing.release_items", fail)
    monkeypatch.setattr("voxpop.engine.local.read.merge_words", fail)
    rows().write_parquet(tmp_path / "a.parquet")
    options = ["--user", "who", "--text", "text", "--epsilon", 1, "--delta", 1e-7]
    code, out, err = voxpop("items", tmp_path / "a.parquet", *options, "-o", tmp_path / "out")
    assert (code, out) == (1, "")
    assert "ValueError: (omitted" in err
    assert_unmarked(err.encode())


def test_work_files_are_private_while_they_are_used(tmp_path):
    """A work file has no name in its folder, and only the owner may read the open file."""
    from voxpop.reading.limited.memory import WorkFile

    file = WorkFile(tmp_path)
    file.append(pl.Series([1, 2, 3]).to_numpy())
    assert os.listdir(tmp_path) == []
    rights = os.fstat(file._file.fileno())
    assert stat.S_IMODE(rights.st_mode) & 0o077 == 0
    assert rights.st_nlink == 0
