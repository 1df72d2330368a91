"""Tests of transferring rows to the local engine on one machine, through private temporary files."""

import shutil
import stat
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from framed import framed
from test_plain_session import counted

import voxpop as vp
from support.look import read_engine
from voxpop.engine.spark import reading as handover
from voxpop.engine.spark.corpus import SparkCorpus
from voxpop.engine.spark.reading import EXACTLY
from voxpop.engine.spark.session import is_here
from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.reading.limited.memory import LEAST_MEMORY

BUDGET = vp.Budget(4, 1e-8)
CANARY = "glockenspielcanary"


@pytest.mark.parametrize(
    ("master", "here"),
    [
        *[(master, True) for master in ("local", "local[3]", "local[*]", "local[2,4]", "local[*, 4]")],
        *[(master, False) for master in ("local-cluster[2,1,1024]", "spark://localhost:7077", "yarn", "k8s://local")],
    ],
)
def test_the_choice_of_the_engine_depends_only_on_the_master(master, here):
    """A local master runs one Java process on this machine.

    The machine of a Connect server is unknown, so its rows are not transferred.
    """
    assert is_here(SimpleNamespace(sparkContext=SimpleNamespace(master=master))) == here
    assert not is_here(SimpleNamespace())


def test_clusters_and_explicit_partitions_give_a_distributed_corpus(spark, talk, elsewhere):
    """A distributed corpus rejects a memory limit."""
    assert isinstance(read_engine(framed(spark, talk), user="who", text="what"), SparkCorpus)
    assert isinstance(
        read_engine(framed(spark, talk), user="who", text="what", options=vp.ReadOptions(partitions=2)), SparkCorpus
    )
    with pytest.raises(InputError, match="not the executors of Spark"):
        read_engine(framed(spark, talk), user="who", text="what", options=vp.ReadOptions(memory="2GiB"))


def test_small_tables_are_read_without_a_limit_by_default(spark, talk, monkeypatch):
    """Reading with a limit and reading without a limit give the same release."""
    frame, found = framed(spark, talk), []
    for factor, memory in ((handover.OF_ITS_BYTES, None), (1 << 60, None), (handover.OF_ITS_BYTES, "1GiB")):
        monkeypatch.setattr(handover, "OF_ITS_BYTES", factor)
        corpus = read_engine(frame, user="who", text="what", options=vp.ReadOptions(memory=memory))
        found.append((corpus.limit is None, vp.Items().release(corpus, BUDGET, seed=4)))
    assert [free for free, _ in found] == [True, False, False]
    assert all(list(release) == list(found[0][1]) for _, release in found)


def test_reading_runs_one_query_and_releases_run_none(spark, talk, tmp_path):
    """No temporary file remains after reading."""
    frame = framed(spark, talk)
    ngrams = vp.NGrams(max_length=3, max_phrases_per_user=4)
    jobs, _, corpus = counted(
        spark, lambda: read_engine(frame, user="who", text="what", options=vp.ReadOptions(work_folder=tmp_path))
    )
    assert (jobs, list(tmp_path.iterdir())) == (1, [])
    jobs, _, first = counted(spark, lambda: ngrams.release(corpus, BUDGET, seed=1))
    assert jobs == 0
    second = ngrams.release(corpus, BUDGET, seed=1)
    local = ngrams.release(read_engine(talk, user="who", text="what"), BUDGET, seed=1)
    assert first.grams.equals(second.grams)
    assert first.grams.equals(local.grams)
    assert first.plan.to_dict() == local.plan.to_dict()
    assert len(first) > 10
    assert corpus.user_key.size == 600


def test_files_are_private_and_removed_one_by_one(spark, talk, tmp_path, monkeypatch):
    """The test inspects the files while they are read. The settings of the session are restored afterwards."""
    seen, real = [], handover.file_batches

    def look(path, *arguments, **more):
        (folder,) = tmp_path.iterdir()
        seen.append((stat.S_IMODE(folder.stat().st_mode), len(list(path.parent.glob("*.parquet"))), path.suffix))
        return real(path, *arguments, **more)

    monkeypatch.setattr(handover, "file_batches", look)
    before = {name: spark.conf.get(name) for name in EXACTLY}
    options = vp.ReadOptions(work_folder=tmp_path)
    read_engine(framed(spark, talk).repartition(3), user="who", text="what", options=options)
    assert seen == [(0o700, left, ".parquet") for left in (3, 2, 1)]
    assert {name: spark.conf.get(name) for name in EXACTLY} == before


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_and_a_memory_limit_do_not_affect_the_release(spark, talk, seed):
    """Order-dependent weightings and sampled sequences give the same results as on executors with one partition."""
    rows = talk.with_columns(who=pl.format("user {}", "who"))
    mixed = framed(spark, rows.sample(fraction=1.0, shuffle=True, seed=seed)).repartition(seed + 1)
    corpora = [
        read_engine(framed(spark, rows), user="who", text="what", options=vp.ReadOptions(partitions=1)),
        read_engine(framed(spark, rows), user="who", text="what"),
        read_engine(mixed, user="who", text="what", options=vp.ReadOptions(memory=LEAST_MEMORY)),
    ]
    union = vp.papers.SetUnion(3, "policy-gaussian", 5.0, "joint")
    sequences = vp.Sequences(max_length=6, max_gram=3, alphabet=["thank", "you", "much"])
    words = [union.release(corpus, BUDGET, seed=seed).to_list() for corpus in corpora]
    trees = [sequences.release(corpus, vp.Budget(4), seed=seed).tree.counts.tolist() for corpus in corpora]
    assert words[0] == words[1] == words[2]
    assert trees[0] == trees[1] == trees[2]
    assert len(words[0]) > 5


def test_a_failed_query_gives_a_one_line_error_and_leaves_no_files(spark, talk, tmp_path, capfd):
    """The error does not contain the message of Spark, because that message quotes rows."""
    failing = framed(spark, talk).selectExpr("who", f"if(who >= 0, raise_error('{CANARY}'), what) AS what")
    options = vp.ReadOptions(work_folder=tmp_path)
    with pytest.raises(SourceError, match="query that gives the table fails on Spark") as caught:
        read_engine(failing, user="who", text="what", options=options)
    assert "\n" not in str(caught.value)
    assert CANARY not in f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"
    full = framed(spark, talk).selectExpr("who", "if(who >= 0, raise_error('No space left on device'), what) AS what")
    with pytest.raises(InputError, match=r"a disk is full.*work_folder"):
        read_engine(full, user="who", text="what", options=options)
    assert list(tmp_path.iterdir()) == []


def test_a_relative_folder_name_is_accepted(spark, talk, tmp_path, monkeypatch):
    """Java resolves relative paths differently. The name of the folder contains a space."""
    (tmp_path / "my work").mkdir()
    monkeypatch.chdir(tmp_path)
    corpus = read_engine(framed(spark, talk), user="who", text="what", options=vp.ReadOptions(work_folder="my work"))
    assert len(vp.papers.SetUnion(3, "weighted", accounting="joint").release(corpus, BUDGET, seed=1)) > 5
    assert list((tmp_path / "my work").iterdir()) == []


def test_a_missing_folder_is_reported(spark, talk, tmp_path):
    """The error is the same as for other tables."""
    folder = tmp_path / "gone"
    with pytest.raises(InputError, match="folder that you own"):
        read_engine(framed(spark, talk), user="who", text="what", options=vp.ReadOptions(work_folder=folder))


def test_times_far_from_today_and_columns_of_nulls_are_read(spark):
    """The values equal those in Spark, even if files do not support them (times after 2262 and columns of nulls)."""
    rows = spark.range(300).selectExpr(
        "id AS who", "timestamp '2500-01-01 00:00:00Z' AS late", "timestamp_ntz '0900-03-01 01:00:00' AS early",
        "date '1500-01-01' AS day", "null AS nothing", "make_dt_interval(1) AS gap",
    )  # fmt: skip
    union = vp.papers.SetUnion(2, "weighted", accounting="joint")
    found = {}
    for items in ("late", "early", "day", "nothing"):
        one, other = (
            union.release(read_engine(rows, user="who", items=items, options=vp.ReadOptions(partitions=p)), BUDGET)
            for p in (1, None)
        )
        assert one == other
        found[items] = len(other)
    assert found == {"late": 1, "early": 1, "day": 1, "nothing": 0}
    with pytest.raises(ColumnError, match=r'column "gap".*interval day'):
        read_engine(rows, user="who", items="gap")


def test_null_values_are_reported(spark, capfd):
    """The message is the same as for a local table."""
    rows = framed(spark, pl.DataFrame({"who": np.arange(40), "what": ["tea", None] * 20}))
    read_engine(rows, user="who", items="what", options=vp.ReadOptions(progress=True))
    assert 'values in "what" are null' in capfd.readouterr().err


def test_a_folder_is_removed_after_a_late_task_writes_to_it(tmp_path, monkeypatch, capfd):
    """Tasks of a failed query can end later. If a folder cannot be removed, a message contains its name."""
    late = [tmp_path / "rows" / str(number) for number in range(3)]

    def written_again(seconds):
        late.pop().mkdir(parents=True)

    real = shutil.rmtree
    tries = iter([None, None, real])
    # Threads of py4j also call `time.sleep`, so the test replaces the module only in `handover`.
    monkeypatch.setattr(handover, "time", SimpleNamespace(sleep=written_again))
    monkeypatch.setattr(handover, "rmtree", lambda *a, **more: (next(tries) or (lambda *_, **__: None))(*a, **more))
    handover._remove(tmp_path)
    assert not tmp_path.exists()
    assert len(late) == 1
    tmp_path.mkdir()
    monkeypatch.setattr(handover, "time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setattr(handover, "rmtree", lambda *_, **__: None)
    handover._remove(tmp_path)
    assert f"{tmp_path} contains private rows" in capfd.readouterr().err
