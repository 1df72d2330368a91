"""Tests that the examples of scheduled releases are charged once, although cron, Airflow and Dagster restart them."""

import datetime as dt
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import polars as pl
import pytest

import voxpop as vp

pytestmark = [pytest.mark.jit, pytest.mark.slow]  # These tests are slow, because they start other processes.
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "nightly"
DAY = "2026-11-24"
KILLED = """
import os, signal, voxpop
from voxpop.mechanisms.set_union import releasing
def kill(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
releasing.release_items = kill
"""
"""Code that kills a release in the middle, like a failure of the machine."""
AIRFLOW = """
import pendulum
from airflow.utils.state import DagRunState
import airflow_dag
from airflow.timetables.base import TimeRestriction
first = TimeRestriction(earliest=pendulum.datetime(2026, 11, 1), latest=None, catchup=False)
info = airflow_dag.nightly.timetable.next_dagrun_info(last_automated_data_interval=None, restriction=first)
assert info.run_after == info.logical_date.add(days=1) <= pendulum.now("UTC"), info  # the day that has ended
run = airflow_dag.nightly.test(logical_date=pendulum.datetime(2026, 11, 24))
assert run.state == DagRunState.SUCCESS, run.state
"""
DAGSTER = f"""
import dagster as dg
import dagster_words
done = dg.materialize([dagster_words.words], partition_key="{DAY}")
assert done.success
assert dagster_words.definitions.resolve_schedule_def("nightly_schedule") is not None
"""


@pytest.fixture
def nightly(tmp_path):
    """Return the folder of the job, with posts of one day and a ledger for thirty days."""
    (tmp_path / "posts").mkdir()
    table = pl.DataFrame({"author": range(3000), "body": ["thank you very much", "see you soon"] * 1500})
    table.write_parquet(tmp_path / "posts" / f"{DAY}.parquet")
    vp.Ledger(tmp_path / "team.ledger").open("posts", vp.Budget(3, 1e-6), create=True)
    return tmp_path


def python(nightly, code, interpreter=sys.executable, **more):
    """Run code with the examples on the path."""
    path = os.pathsep.join([str(EXAMPLES), str(Path(vp.__file__).parents[1])])
    environment = {**os.environ, "PYTHONPATH": path, "NIGHTLY": str(nightly), "HOME": str(nightly / "home"), **more}
    call = [interpreter, "-c", textwrap.dedent(code)]
    return subprocess.run(call, env=environment, capture_output=True, text=True, check=False)


def interpreter_with(library):
    """Return a Python interpreter that has a library, either the current one or one that VOXPOP_ORCHESTRATORS lists."""
    for each in (sys.executable, *os.environ.get("VOXPOP_ORCHESTRATORS", "").split(os.pathsep)):
        found = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({library!r}) is None)"
        if each and subprocess.run([each, "-c", found], check=False).returncode == 0:
            return each
    pytest.skip(f"{library} is not installed: name a Python that has it in VOXPOP_ORCHESTRATORS")


def assert_charged_once(nightly, attempts):
    """Check that there is one charge and one release, and that this release was saved."""
    (entry,) = vp.Ledger(nightly / "team.ledger").account("posts").entries
    assert (entry.label, entry.state, entry.attempt) == (DAY, "finished", attempts)
    assert vp.load(nightly / "words" / DAY).id == entry.release


def test_a_killed_job_can_be_repeated(nightly):
    """The job is killed in the middle and then started twice."""
    call = f"import job; print(job.release_words('{DAY}'))"
    assert python(nightly, KILLED + call).returncode < 0
    assert vp.Ledger(nightly / "team.ledger").account("posts").entries[0].state == "charged"
    for _ in range(2):
        done = python(nightly, call)
        assert done.stdout.endswith(f"\n{nightly / 'words' / DAY}\n"), done.stderr
        assert_charged_once(nightly, 2)


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs sh")
def test_a_repeated_cron_job_is_charged_once(nightly, tmp_path):
    """The script of the example runs unchanged, with `voxpop` on the path."""
    command = tmp_path / "bin" / "voxpop"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m voxpop.cli "$@"\n')
    command.chmod(0o755)
    environment = {
        **os.environ,
        "NIGHTLY": str(nightly),
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(vp.__file__).parents[1]),
    }
    assert python(nightly, f"{KILLED}import job; job.release_words('{DAY}')").returncode < 0
    for _ in range(2):
        call = [str(EXAMPLES / "nightly.sh"), DAY]
        done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert f'Ledger: entry 1 of "posts", budget (3, 1e-06), run "{DAY}".' in done.stdout
        assert_charged_once(nightly, 2)


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs sh")
def test_the_cron_script_uses_the_previous_day(tmp_path):
    """Without an argument, the script passes the day before today in UTC to the job."""
    command = tmp_path / "voxpop"
    command.write_text('#!/bin/sh\necho "$DAY $@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "NIGHTLY": str(tmp_path), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    before = dt.datetime.now(dt.UTC).date()
    done = subprocess.run([EXAMPLES / "nightly.sh"], env=environment, capture_output=True, text=True, check=True)
    days = {before - dt.timedelta(days=1), dt.datetime.now(dt.UTC).date() - dt.timedelta(days=1)}
    assert dt.date.fromisoformat(done.stdout.split()[0]) in days
    assert done.stdout.split()[1:] == ["run", f"{EXAMPLES}/words.toml"]


@pytest.mark.slow
def test_a_repeated_airflow_task_is_charged_once(nightly):
    """The Airflow task succeeds after a killed attempt, and succeeds again when it is repeated."""
    airflow = interpreter_with("airflow")
    more = {
        "AIRFLOW_HOME": str(nightly / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
    }
    migrated = subprocess.run(
        [airflow, "-m", "airflow", "db", "migrate"],
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert migrated.returncode == 0, migrated.stderr
    assert python(nightly, f"{KILLED}import job; job.release_words('{DAY}')").returncode < 0
    for _ in range(2):
        done = python(nightly, AIRFLOW, airflow, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        assert_charged_once(nightly, 2)


@pytest.mark.slow
def test_a_repeated_dagster_asset_is_charged_once(nightly):
    """The Dagster asset is materialized after a killed attempt, and materialized again when it is repeated."""
    dagster = interpreter_with("dagster")
    (nightly / "dagster").mkdir()
    assert python(nightly, f"{KILLED}import job; job.release_words('{DAY}')").returncode < 0
    for _ in range(2):
        done = python(nightly, DAGSTER, dagster, DAGSTER_HOME=str(nightly / "dagster"))
        assert done.returncode == 0, done.stdout + done.stderr
        assert_charged_once(nightly, 2)
