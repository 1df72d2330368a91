"""Tests of `voxpop run`.

A job file runs the command that it describes, and the record of the result contains the digest of the job.
"""

import json
import re
import sqlite3
import subprocess
import sys
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import polars as pl
import pytest

import voxpop as vp
from voxpop.cli import jobs
from voxpop.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
JOB = """
# Words of the posts.
command = "items"
source = "posts.parquet"
output = "words"

[table]
user = "author"
text = "body"

[mechanism]
max_items_per_user = 1

[budget]
epsilon = 1
delta = 1e-8
"""
LEDGER = """
[ledger]
ledger = "team.ledger"
dataset = "posts"
run_id = "${DAY}"
"""


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Write a table, a ledger and a job, and return a function that writes another job."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"author": range(400), "body": ["tea"] * 400}).write_parquet("posts.parquet")
    vp.Ledger("team.ledger").open("posts", vp.Budget(3, 1e-6), create=True)

    def write(text=JOB):
        (tmp_path / "job.toml").write_text(text)
        return "job.toml"

    write()
    return write


@pytest.mark.parametrize("command", jobs.COMMANDS)
def test_every_option_of_every_command_is_a_key(command):
    """The schema agrees with the command line, so each option in the help has a key."""
    schema = jobs.schema_of(app, command)
    names = {argument.name for section in schema.values() for argument in section.values()}
    shown = {each.name for each in app[command].assemble_argument_collection() if each.show and not each.children}
    assert names == shown
    assert {"epsilon", "delta"} <= schema["budget"].keys()
    assert "job" not in schema["ledger"]


def test_the_reference_lists_every_key():
    """Each key has a row in its section of the reference."""
    text = (ROOT / "docs" / "reference" / "jobs.md").read_text()
    listed = {
        (section if section != "top" else "", key)
        for section, keys in re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.MULTILINE)
        for key in re.findall(r"`(\w+)`", keys)
    }
    known = {
        (section, key)
        for command in jobs.COMMANDS
        for section, keys in jobs.schema_of(app, command).items()
        for key in keys
    }
    assert listed == known | {("", "command")}


def test_a_job_runs_its_command(voxpop, job):
    """The result has the settings of the job, and its record contains the digest."""
    code, out, err = voxpop("run", "job.toml")
    assert (code, err) == (0, "")
    assert "Released 1 item." in out
    release = vp.load("words", vp.Release)
    assert release.plan.max_items_per_user == 1
    assert release.metadata.job == jobs.Job(app, Path("job.toml"), []).digest
    assert release.metadata.job in out
    assert release.metadata.job in Path("words/report.html").read_text()
    assert voxpop("verify", "words").code == 0


def test_every_kind_of_value_becomes_an_option(voxpop, job):
    """Lists become repeated options, truth values become flags, and pairs become NAME=VALUE."""
    table = pl.DataFrame({"author": range(400), "size": [1] * 400, "body": ["<b>Tea</b>"] * 400, "team": 1})
    table.write_csv("posts.csv")
    text = JOB.replace('"posts.parquet"', '["posts.csv"]').replace('user = "author"', 'user = ["author", "team"]')
    job(text.replace('text = "body"', 'text = "body"\nhtml = true\nsentences = false\ntypes = {author = "int64"}'))
    assert voxpop("run", "job.toml").code == 0
    assert list(vp.load("words")) == ["tea"]
    profile = 'command = "profile"\nsource = "posts.csv"\noutput = "profile"\n[table]\nuser = "author"\n[mechanism]\n'
    job(profile + 'counts = false\ncolumns = ["size", "team"]\n[budget]\nepsilon = 2\ndelta = 1e-7')
    assert voxpop("run", "job.toml", "--dry-run").code == 0
    assert voxpop("run", "job.toml").code == 0
    assert vp.load("profile").error is None


def test_a_job_can_release_counts(voxpop, job):
    """A job may add counts to a release. The record of the counts contains the digest of the job."""
    voxpop("run", "job.toml")
    job(
        JOB.replace('"items"', '"count"')
        .replace('output = "words"', 'dir = "words"')
        .replace("[mechanism]\nmax_items_per_user = 1", "")
    )
    dry = voxpop("run", "job.toml", "--dry-run")
    assert dry.code == 0
    assert voxpop("run", "job.toml", "--json").json["counted"] == 1
    assert vp.load("words", vp.Counts).metadata.job in dry.out


def test_a_dry_run_charges_and_writes_nothing(voxpop, job, monkeypatch):
    """The dry run shows columns, output, ledger, plan and digest."""
    monkeypatch.setenv("DAY", "monday")
    job(JOB + LEDGER)
    monkeypatch.setattr(vp, "read", None)
    code, out, err = voxpop("run", "job.toml", "--dry-run")
    assert (code, err) == (0, "")
    for words in ("author, body", "MiB free", '"posts" with (3, 1e-06), unused', "(1, 1e-08)-DP", "sha256:"):
        assert words in out
    found = voxpop("run", "job.toml", "--dry-run", "--json").json
    assert (found["charged"], found["columns"], found["ledger"]["run"]) == (False, ["author", "body"], "new")
    assert vp.Ledger("team.ledger").account("posts").entries == []
    assert not Path("words").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"posts.parquet"', '"nowhere.parquet"'), "nowhere.parquet"),
        (('"author"', '"autor"'), 'Did you mean "author"?'),
        (("epsilon = 1", "epsilon = 9"), "Not enough budget left"),
        (("epsilon = 1", "epsilon = -1"), "`epsilon` must be"),
        (('dataset = "posts"', 'dataset = "others"'), "others"),
    ],
)
def test_a_dry_run_finds_errors_of_the_run(voxpop, job, monkeypatch, change, words):
    """A dry run checks sources, columns, budgets and ledgers without reading any row."""
    monkeypatch.setenv("DAY", "monday")
    job((JOB + LEDGER).replace(*change))
    assert words in voxpop("run", "job.toml", "--dry-run").complaint


@pytest.mark.parametrize("address", ["https://127.0.0.1:9/t.parquet", "s3://bucket/t.csv"])
def test_a_dry_run_reports_that_it_opened_no_address(voxpop, job, address):
    """The dry run does not check the columns of a source at an address, and must not suggest that they are correct."""
    job(JOB.replace("posts.parquet", address))
    assert "a dry run opens no address" in voxpop("run", "job.toml", "--dry-run").out
    assert voxpop("run", "job.toml", "--dry-run", "--json").json["source_opened"] is False
    job()
    assert voxpop("run", "job.toml", "--dry-run", "--json").json["source_opened"] is True


def test_types_of_undeclared_columns_pass_the_dry_run(voxpop, job):
    """Values of CSV and SQLite have no declared types, so a job may declare them."""
    pl.DataFrame({"author": range(400), "shop": [7] * 400}).write_csv("shops.csv")
    with sqlite3.connect("shop.db") as shop:
        shop.execute("create table posts (author, shop)")
        shop.executemany("insert into posts values (?, 7)", [(number,) for number in range(400)])
    text = JOB.replace('text = "body"', 'items = "shop"\ntypes = {shop = "int64"}')
    job(text.replace("posts.parquet", "shops.csv"))
    assert voxpop("run", "job.toml", "--dry-run").code == 0
    query = 'database = "sqlite:///shop.db"\nsql = "select author, shop from posts"'
    job(text.replace('source = "posts.parquet"', "").replace("[table]", f"[table]\n{query}"))
    assert voxpop("run", "job.toml", "--dry-run").code == 0


def test_a_dry_run_reports_finished_runs(voxpop, job, monkeypatch):
    """The dry run reports that a run has already finished and would read nothing."""
    monkeypatch.setenv("DAY", "monday")
    job(JOB + LEDGER)
    assert voxpop("run", "job.toml").code == 0
    assert "this run has already finished" in voxpop("run", "job.toml", "--dry-run").out
    assert voxpop("run", "job.toml").code == 0
    assert len(vp.Ledger("team.ledger").account("posts").entries) == 1


def test_the_digest_covers_everything_except_layout_and_variables(job, monkeypatch):
    """Values and overrides change the digest.

    Comments, the order of keys and environment variables do not change it.
    """
    path = Path(job(JOB + LEDGER))
    digest = jobs.Job(app, path, []).digest
    monkeypatch.setenv("DAY", "tuesday")
    job(
        JOB.replace("# Words", "# Other words").replace(
            'user = "author"\ntext = "body"', 'text = "body"\nuser = "author"'
        )
        + LEDGER
    )
    assert jobs.Job(app, path, []).digest == digest
    assert jobs.Job(app, path, ["budget.epsilon=2"]).digest != digest
    assert jobs.Job(app, path, ["ledger.dataset=other"]).digest != digest


def test_only_the_approved_job_runs(voxpop, job):
    """With `--digest`, a changed job does not run."""
    digest = jobs.Job(app, Path("job.toml"), []).digest
    job(JOB.replace("epsilon = 1", "epsilon = 2"))
    assert "another digest was approved" in voxpop("run", "job.toml", "--digest", digest).complaint
    assert not Path("words").exists()
    assert voxpop("run", "job.toml", "--set", "budget.epsilon=1", "--digest", digest).code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (JOB.replace('"items"', '"show"'), "`command` must be one of items"),
        (JOB.replace('command = "items"', ""), "`command` must be one of items"),
        (JOB.replace("user", "usr", 1), 'Did you mean "user"?'),
        (JOB.replace("[table]", "[tabel]"), 'Did you mean "table"?'),
        (JOB + "\n[ledger]\nuser = 'author'", "It belongs to [table]"),
        (JOB.replace('output = "words"', 'output = "words"\nresult = "x"'), "must be a section"),
        (JOB.replace("max_items_per_user = 1", "max_items_per_user = "), "must be a TOML file"),
        (
            JOB.replace("max_items_per_user = 1", 'max_items_per_user = "${LIMIT}"'),
            "must not use environment variables",
        ),
        (JOB.replace('"author"', '"${USER_COLUMN}"'), "must not use environment variables"),
        (JOB.replace('"words"', '"${MISSING_FOLDER}"'), "which is not set"),
    ],
)
def test_errors_of_invalid_jobs_name_the_next_step(voxpop, job, text, words):
    """A job with an unknown key, a wrong value or a missing variable does not run."""
    assert words in voxpop("run", job(text)).complaint
    assert not Path("words").exists()


@pytest.mark.parametrize(
    ("given", "words"),
    [("epsilon", "--set must be KEY=VALUE"), ("a.b.c=1", "--set must be"), ("source.x=1", "must be a section")],
)
def test_errors_of_invalid_overrides_name_the_next_step(voxpop, job, given, words):
    """An override needs a key and a value."""
    assert words in voxpop("run", "job.toml", "--set", given).complaint


def test_the_error_for_a_missing_job_names_the_option_new(voxpop):
    """The message names the option `--new`."""
    assert "voxpop run --new" in voxpop("run", "nowhere.toml").complaint


def test_a_job_reads_a_database(voxpop, job, monkeypatch):
    """The address is in an environment variable, which the digest does not cover."""
    with sqlite3.connect("shop.db") as shop:
        shop.execute("create table posts (author, body)")
        shop.executemany("insert into posts values (?, 'tea')", [(str(number),) for number in range(400)])
    text = JOB.replace('source = "posts.parquet"', "").replace("[table]", '[table]\nsql = "select * from posts"')
    job(text.replace("[table]", '[table]\ndatabase = "${SHOP}"'))
    monkeypatch.setenv("SHOP", "sqlite:///shop.db")
    assert "author, body" in voxpop("run", "job.toml", "--dry-run").out
    assert voxpop("run", "job.toml").code == 0
    assert list(vp.load("words")) == ["tea"]


def test_answers_to_the_prompts_create_a_job(voxpop, job, monkeypatch):
    """The answers to the prompts give a job that a dry run accepts."""
    answers = "items\nposts.parquet\nauthor\ntext\nbody\n1\n1e-8\nnew words\nteam.ledger\nposts\n\n"
    monkeypatch.setattr(sys, "stdin", StringIO(answers))
    ran = voxpop("run", "--new", "new.toml")
    assert ran.code == 0, ran.err
    assert 'has the columns "author", "body"' in ran.err
    monkeypatch.setenv("DAY", "1")
    assert voxpop("run", "new.toml", "--dry-run").code == 0
    assert "already exists" in voxpop("run", "--new", "new.toml").complaint


def test_no_job_is_written_after_missing_answers(job):
    """If the input ends before the last answer, the command reports an error."""
    ran = subprocess.run(
        [sys.executable, "-m", "voxpop.cli", "run", "--new", "new.toml"],
        input="items\n",
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 2
    assert "must have an answer" in ran.stderr
    assert not Path("new.toml").exists()


def test_a_job_prints_the_json_of_its_command(voxpop, job):
    """With `--json`, a job prints the JSON object of its command."""
    assert voxpop("run", "job.toml", "--json").json["released"] == 1
    assert json.loads(Path("words/release.json").read_text())["metadata"]["job"].startswith("sha256:")


@pytest.mark.parametrize("given", ["--seed=4", "--max-items-per-user=9", "--exact"])
def test_no_value_of_a_job_becomes_an_option(voxpop, job, monkeypatch, given):
    """A source that looks like an option, for example from an environment variable, changes no setting."""
    monkeypatch.setenv("FILE", given)
    job(JOB.replace('"posts.parquet"', '["posts.parquet", "${FILE}"]').replace("max_items_per_user = 1\n", ""))
    assert "is not a file" in voxpop("run", "job.toml").complaint
    assert "is not a file" in voxpop("run", "job.toml", "--dry-run").complaint
    assert not Path("words").exists()


def test_a_hyphen_as_source_denotes_standard_input(voxpop, job, monkeypatch):
    """A job reads standard input as the command does."""
    job(JOB.replace('"posts.parquet"', '"-"'))
    rows = "author,body\n" + "".join(f"{number},tea\n" for number in range(400))
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(rows.encode())))
    ran = voxpop("run", "job.toml")
    assert ran.code == 0, ran.err
    assert list(vp.load("words")) == ["tea"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (JOB + '\n[""]\nsource = "others.parquet"', 'has no key ""'),
        (JOB.replace('user = "author"', "user = true"), "must be a string or a number"),
        (JOB.replace('"posts.parquet"', "true"), "must be a string or a number"),
        (JOB.replace("epsilon = 1", "epsilon = true"), "must be a string or a number"),
        (JOB + "\n[result]\ntitle = false", "must be a string or a number"),
        (JOB.replace("max_items_per_user = 1", "max_items_per_user = 2.5"), "must be a whole number"),
        (JOB.replace("max_items_per_user = 1", "min_users = 20.9"), "must be a whole number"),
    ],
)
def test_unsuitable_values_are_reported_and_not_ignored(voxpop, job, text, words):
    """No part of a job is ignored or changed without a message."""
    assert words in voxpop("run", job(text)).complaint
    assert not Path("words").exists()


@pytest.mark.parametrize("command", ["items", "plan items"])
def test_fractions_are_rejected_for_whole_number_options(voxpop, job, command):
    """The command line does not round numbers."""
    more = [] if command.startswith("plan") else ["posts.parquet", "--user", "author", "--text", "body", "-o", "words"]
    given = [*command.split(), *more, "--epsilon", 1, "--delta", 1e-8, "--max-items-per-user", 2.5]
    assert "must be a whole number" in voxpop(*given).complaint


@pytest.mark.parametrize(
    "overrides",
    [
        ['table.tokenizer="wrods"'],
        ["table.session_gap=30min"],
        ["table.order=author"],
        ["table.user=body"],
        ["table.user="],
        ["table.tokens=body", "table.text="],
        ['table.text="author"', 'table.user="body"'],
        ['execution.memory="1 parsec"'],
        ['execution.memory="1KiB"'],
        ['execution.memory="1GiB"', 'execution.work_folder="nowhere"'],
        ['table.types={body = "int64"}'],
        ["table.text=", "table.items=body", 'table.types={body = "int64"}'],
        ["table.text=", "table.items=body", 'table.types={shop = "int64"}'],
        ["table.text=", "table.items=body", 'table.types={author = "string"}'],
        ["table.text=bdy"],
        ["source=posts.csv", "table.text=bdy"],
        ['result.title="a\\u0000b"'],
        ["command=profile", "mechanism={}", "table.text=", "execution.memory=1KiB"],
        ["source=lines.jsonl", 'table.tokenizer="wrods"'],
        ["source=lines.jsonl", "table.user=body"],
    ],
)
def test_a_dry_run_rejects_the_same_jobs_as_the_run(voxpop, job, overrides):
    """A dry run rejects an invalid option for reading with the same message as the run, and reads no row."""
    table = pl.DataFrame({"author": range(400), "body": ["tea"] * 400})
    table.write_ndjson("lines.jsonl")
    table.write_csv("posts.csv")
    given = [word for each in overrides for word in ("--set", each)]
    dry, ran = voxpop("run", "job.toml", *given, "--dry-run"), voxpop("run", "job.toml", *given)
    assert dry.code == ran.code == 2
    last = ran.err.splitlines()[-1]
    assert "the table" not in dry.complaint + last
    assert last.removeprefix("voxpop: ").rpartition(" on: ")[2] in dry.complaint


@pytest.mark.parametrize("ending", [" -- all of them", ";", "\n"])
def test_a_dry_run_accepts_a_query_with_a_comment(voxpop, job, ending):
    """A dry run shows the columns of a query that ends with a comment, a semicolon or a line feed."""
    with sqlite3.connect("shop.db") as shop:
        shop.execute("create table posts (author, body, at)")
        shop.executemany("insert into posts values (?, 'tea', '2026-01-01')", [(str(number),) for number in range(400)])
    text = JOB.replace('source = "posts.parquet"', "").replace("[table]", "[table]\ndatabase = 'sqlite:///shop.db'")
    job(text.replace("[table]", f"[table]\nsql = {json.dumps('select author, body from posts' + ending)}"))
    assert "author, body" in voxpop("run", "job.toml", "--dry-run").out


@pytest.mark.parametrize("name", ["events.csv", "events.parquet", "events.jsonl"])
def test_a_dry_run_accepts_events_of_every_file(voxpop, job, name):
    """A dry run accepts event times with and without a declared type."""
    table = pl.DataFrame({"who": range(300), "what": ["a"] * 300, "when": ["2026-01-01T10:00:00"] * 300})
    {"csv": table.write_csv, "jsonl": table.write_ndjson, "parquet": table.with_columns(
        pl.col("when").str.to_datetime()).write_parquet}[name.rpartition(".")[2]](name)  # fmt: skip
    text = f'command = "sequences"\nsource = "{name}"\noutput = "model"\n[table]\nuser = "who"\nsequence = "what"\n'
    job(text + 'order = "when"\nsession_gap = "30min"\n[mechanism]\nalphabet = "a,b"\n[budget]\nepsilon = 1')
    assert voxpop("run", "job.toml", "--dry-run").code == 0
    assert voxpop("run", "job.toml").code == 0


def test_a_finished_run_with_other_settings_is_reported(voxpop, job, monkeypatch):
    """A finished run is not repeated, but the output reports that the result was made with other settings."""
    monkeypatch.setenv("DAY", "monday")
    job(JOB + LEDGER)
    assert voxpop("run", "job.toml").code == 0
    for call in (["run", "job.toml"], ["run", "job.toml", "--dry-run"]):
        assert "settings of this job did not run" not in voxpop(*call).out
        assert "settings of this job did not run" in voxpop(*call, "--set", "budget.epsilon=0.5").out
    assert voxpop("run", "job.toml", "--json").json["same_job"] is True
    assert voxpop("run", "job.toml", "--set", "budget.epsilon=0.5", "--json").json["same_job"] is False
    assert len(vp.Ledger("team.ledger").account("posts").entries) == 1


def test_a_dry_run_of_a_finished_run_needs_its_result(voxpop, job, monkeypatch):
    """A dry run rejects a finished run if its result is not in the folder, as the run itself would."""
    monkeypatch.setenv("DAY", "monday")
    job(JOB + LEDGER)
    assert voxpop("run", "job.toml").code == 0
    given = ["--set", "output=others"]
    assert voxpop("run", "job.toml", *given, "--dry-run").complaint == voxpop("run", "job.toml", *given).complaint


@pytest.mark.parametrize(
    "answers",
    [
        "bogus\nposts.parquet\nauthor\ntext\nbody\n1\n1e-8\nwords\n\n",
        "items\nposts.parquet\nauthor\nwhat\nbody\n1\n1e-8\nwords\n\n",
        "items\nposts.parquet\nauthor\ntext\nbody\nmuch\n1e-8\nwords\n\n",
    ],
)
def test_no_job_is_written_after_wrong_answers(voxpop, job, monkeypatch, answers):
    """Because no file was written, the prompts can be answered again."""
    monkeypatch.setattr(sys, "stdin", StringIO(answers))
    assert voxpop("run", "--new", "new.toml").code == 2
    assert not Path("new.toml").exists()


def test_an_empty_environment_variable_is_rejected(voxpop, job, monkeypatch):
    """An empty name of a run is rejected, because without a name each start of the run would be charged."""
    monkeypatch.setenv("DAY", "")
    job(JOB + LEDGER)
    assert "${DAY}, which is not set or empty" in voxpop("run", "job.toml").complaint
    assert vp.Ledger("team.ledger").account("posts").entries == []
