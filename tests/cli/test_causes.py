"""Tests of exit codes for each cause, errors as JSON, the log, and repeated runs."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

import voxpop as vp
from voxpop import errors
from voxpop.cli import entry
from voxpop.errors import MemoryLimitError
from voxpop.ledger import runs

CALL = [
    "--user",
    "author",
    "--text",
    "body",
    "--epsilon",
    1,
    "--delta",
    "1e-8",
    "--max-items-per-user",
    1,
    "-o",
    "words",
]
LEDGER = ["--ledger", "team.ledger", "--dataset", "posts", "--run-id", "monday"]


@pytest.fixture
def posts(tmp_path, monkeypatch):
    """Write a table and a ledger."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"author": range(400), "body": ["tea"] * 400}).write_parquet("posts.parquet")
    vp.Ledger("team.ledger").open("posts", vp.Budget(1.5, 1e-6), create=True)


def error_of(ran):
    """Return the JSON object on standard error."""
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    return json.loads(ran.err)


@pytest.mark.parametrize(
    ("change", "code", "cause"),
    [
        (["--epsilon", 9], 3, "budget"),
        (["--epsilon", 0], 2, "call"),
        (["--user", "autor"], 2, "call"),
        (["--limits", 1], 2, "call"),
    ],
)
@pytest.mark.usefixtures("posts")
def test_each_cause_has_its_own_exit_code(voxpop, change, code, cause):
    """The exit code and the JSON object depend on the cause of an error, and nothing is charged."""
    call = list(CALL)
    if change[0] in call:
        call[call.index(change[0]) + 1] = change[1]
    else:
        call += change
    found = error_of(voxpop("items", "posts.parquet", *call, *LEDGER, "--errors", "json"))
    assert (found["code"], found["cause"], found["charged"], found["kept"]) == (code, cause, False, None)
    assert voxpop("items", "posts.parquet", *call, *LEDGER).code == code
    assert vp.Ledger("team.ledger").account("posts").entries == []


@pytest.mark.usefixtures("posts")
def test_messages_are_part_of_the_json_object(voxpop, monkeypatch):
    """The plan of a profile, messages about rows, and the traceback of a fault are not printed before the object."""
    Path("torn.csv").write_text("author,body\n1,tea\n,tea\n")
    call = ["profile", "torn.csv", "--user", "author", "--epsilon", 1, "--delta", "1e-8", "-o", "values"]
    found = error_of(voxpop(*call, "--errors", "json"))
    assert found["code"] == 5
    assert any("(1, 1e-08)-DP" in line for line in found["messages"])
    done = voxpop(*call, "--drop-missing-users", "--errors", "json")
    assert done.code == 0
    assert "(1, 1e-08)-DP" in done.err
    monkeypatch.setattr(vp, "read", None)  # Calling None raises a TypeError, which counts as a fault.
    found = error_of(voxpop("items", "posts.parquet", *CALL, "--errors", "json"))
    assert found["code"] == 1
    assert found["messages"][0].startswith("Traceback")


@pytest.mark.usefixtures("posts")
def test_too_little_memory_is_reported(voxpop, monkeypatch):
    """A memory limit that is too small for the work has a separate exit code."""

    def short(*_, **__):
        raise MemoryLimitError("memory=1MiB is too little. Raise it.")

    monkeypatch.setattr("voxpop.engine.read.read_here", short)
    assert error_of(voxpop("items", "posts.parquet", *CALL, "--errors", "json"))["code"] == 6


@pytest.mark.parametrize("name", ["nowhere.parquet", "torn.parquet", "empty.csv"])
@pytest.mark.usefixtures("posts")
def test_unreadable_sources_are_reported(voxpop, name):
    """Missing, truncated and empty files cause a separate exit code, and nothing is charged."""
    Path("torn.parquet").write_bytes(Path("posts.parquet").read_bytes()[:200])
    Path("empty.csv").write_bytes(b"")
    found = error_of(voxpop("items", name, *CALL, *LEDGER, "--errors=json"))
    assert (found["code"], found["cause"], found["charged"]) == (5, "source", False)
    assert vp.Ledger("team.ledger").account("posts").entries == []


@pytest.mark.parametrize(("options", "charged"), [(LEDGER, True), ([], False)])
@pytest.mark.usefixtures("posts")
def test_an_unsaved_result_is_reported(voxpop, monkeypatch, options, charged):
    """The error contains the folder of the kept result, and `voxpop resume` saves the result."""

    def taken(kept, folder, *, publish=runs.publish, **more):
        folder.mkdir()  # This line simulates another process that writes after the check.
        (folder / "notes.txt").touch()
        publish(kept, folder, **more)

    with monkeypatch.context() as patched:
        patched.setattr(runs, "publish", taken)
        found = error_of(voxpop("items", "posts.parquet", *CALL, *options, "--errors", "json"))
    assert (found["code"], found["cause"], found["charged"]) == (4, "not saved", charged)
    assert voxpop("resume", found["kept"], "-o", "other").code == 0
    assert list(vp.load("other")) == ["tea"]


@pytest.mark.usefixtures("posts")
def test_a_repeated_run_is_reported(voxpop):
    """The text, the JSON object and the log distinguish a repeated run from a first run."""
    first = voxpop("items", "posts.parquet", *CALL, *LEDGER)
    again = voxpop("items", "posts.parquet", *CALL, *LEDGER, "--log", "log.jsonl")
    assert "had already finished, so no row was read and nothing was charged" in again.out
    assert "had already finished" not in first.out
    assert (again.code, again.err) == (0, "")
    assert voxpop("items", "posts.parquet", *CALL, *LEDGER, "--json").json["repeated"] is True
    assert [json.loads(line)["event"] for line in Path("log.jsonl").read_text().splitlines()] == ["repeated"]


@pytest.mark.usefixtures("posts")
def test_the_log_has_every_step(voxpop):
    """Steps are appended in order as lines of JSON, without any data or numbers of rows."""
    assert "repeated" not in voxpop("--log", "log.jsonl", "items", "posts.parquet", *CALL, *LEDGER, "--json").json
    assert voxpop("items", "nowhere.parquet", *CALL[:-1], "other", "--log=log.jsonl").code == 5
    text = Path("log.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    steps = ["planned", "read", "charged", "released", "saved", "planned", "error"]
    assert [each["event"] for each in lines] == steps
    assert lines[2]["entry"].startswith('entry 1 of "posts"')
    assert lines[-1]["cause"] == "source"
    assert "tea" not in text
    assert "400" not in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--errors", "xml"], "--errors must be text or json"),
        (["--log"], "--log must be the name of a file"),
        (["--log", "nowhere/log"], "cannot be written"),
    ],
)
def test_invalid_global_options_are_reported(voxpop, options, words):
    """An invalid value of an option that all commands have causes an error before anything runs."""
    assert words in voxpop("show", "words", *options).complaint


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("sqlite:///shop.db", [], "Give it as --database"),
        ("postgresql://me:secret@host/shop", [], "Give it as --database"),
        ("select author, body from posts", [], "Give it as --sql"),
        ("shop.sqlite", [], "--database sqlite:///shop.sqlite"),
        ("shop.db3", [], "--database sqlite:///shop.db3"),
        ("shop.duckdb", [], "--database duckdb:///shop.duckdb"),
        ("posts.parquet", ["--database", "sqlite:///shop.db"], "Add --sql QUERY"),
        ("posts.parquet", ["--sql", "select 1"], "not both"),
        (None, ["--sql", "select 1"], "Add --database ADDRESS"),
        (None, [], "The source is missing"),
        (None, ["--sql", "select 1", "--database", "sqlite:///no/such.db"], "no existing SQLite file"),
        (None, ["--sql", "select * from t order by random()", "--database", "sqlite:///:memory:"], "draws at random"),
        ("posts.parquet", ["--dry-run"], "--dry-run"),
    ],
)
@pytest.mark.usefixtures("posts")
def test_databases_and_queries_are_distinguished_from_files(voxpop, monkeypatch, source, options, words):
    """If a database or a query is passed as a file, the message names the right options and quotes no password."""
    monkeypatch.delenv("VOXPOP_DATABASE", raising=False)
    complaint = voxpop("items", *([source] if source else []), *CALL, *options).complaint
    assert words in complaint
    assert "secret" not in complaint


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (["items", "posts.parquet", *CALL, "--dry-run"], "Unknown option: --dry-run. Write the options to a job file"),
        (["items", "posts.parquet", *CALL, "--config", "x"], "start it with `voxpop run JOB`"),
        (
            ["series", "run", "state", "posts.parquet", "--ledger", "x"],
            "`voxpop series init DIR --ledger FILE --dataset NAME`",
        ),
        (["series", "run", "state", "posts.parquet", "--epsilon", 1], "`voxpop series init DIR --epsilon E --delta D`"),
        (["series", "run", "state", "posts.parquet", "--nights", 3], "`voxpop series init DIR --nights N`"),
        (["series", "run", "state", "posts.parquet", "--run-id", 3], "--night"),
        (["ledger", "open", "team.ledger"], "Call `voxpop ledger init`"),
        (["verify", "words", "--ledger", "x"], "Did you mean --digest?"),
        (["plan", "series", "--nights", 3], "Call `voxpop series plan`"),
        (["items", "posts.parquet", *CALL, "--ledgerr", "x"], "Did you mean --ledger?"),
    ],
)
def test_messages_about_unknown_options_name_the_option_or_command_to_use(voxpop, call, words):
    """The message names the command or the option that the caller needs."""
    assert words in voxpop(*call).complaint


def test_planning_a_series_needs_no_folder_or_ledger(voxpop):
    """The output equals the plan of `plan_series`."""
    call = ["series", "plan", "--nights", 30, "--epsilon", 3, "--delta", "1e-6"]
    assert "(3, 1e-06)-DP" in voxpop(*call).out
    assert voxpop(*call, "--json").json["plan"]["nights"] == 30


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_shells_complete_commands(voxpop, shell):
    """The completion script contains the commands and their options."""
    code, out, err = voxpop("completion", shell)
    assert (code, err) == (0, "")
    assert "voxpop" in out
    assert "tokenizer" in out


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_a_command(voxpop, tmp_path):
    """With the script, Bash itself completes the beginning of a command."""
    (tmp_path / "completion").write_text(voxpop("completion", "bash").out)
    code = 'source ./completion; COMP_WORDS=(voxpop hea); COMP_CWORD=1; COMP_LINE="voxpop hea"; COMP_POINT=10; '
    code += '_voxpop voxpop hea voxpop; echo "${COMPREPLY[@]}"'
    ran = subprocess.run(["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stdout.split() == ["heavy-hitters"], ran.stderr


def test_the_pages_list_the_exit_codes_of_the_command():
    """The guide to jobs lists every code, and the reference lists the code of each error."""
    docs = Path(__file__).resolve().parent.parent.parent / "docs"
    section = (docs / "guides" / "jobs.md").read_text("utf-8").partition("## Exit codes")[2]
    listed = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", section, re.MULTILINE) for code in row.split(",")}
    assert listed == {entry.DONE, entry.CLOSED, *entry.CAUSES}
    rows = re.findall(
        r"^\| .*?`(\w+)`.* \| (\d+) \|$", (docs / "reference" / "errors.md").read_text("utf-8"), re.MULTILINE
    )
    kinds = {name: int(code) for name, code in rows}
    assert kinds.pop("InternalError") == entry.FAULT
    assert len(kinds) == 4
    for name, code in kinds.items():
        assert entry._code_of(getattr(errors, name)("a problem. Do this.")) == code
    assert entry._code_of(errors.ColumnError("a problem. Do this.")) == entry.WRONG_CALL
