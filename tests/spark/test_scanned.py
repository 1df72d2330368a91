"""A query that only reads Parquet files of this machine: the local engine reads them, and what is more is Spark's."""

import datetime
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest
from framed import framed
from pyarrow import parquet
from test_plain_session import counted

import voxpop as vp
from voxpop.errors import SourceError
from voxpop.spark import handover
from voxpop.spark.scanned import LENIENT, scanned_files

BUDGET = vp.Budget(4, 1e-8)
NAMES = ["who", "what"]


@pytest.fixture
def stored(talk, tmp_path):
    """Return two files in a folder with an odd name."""
    folder = tmp_path / "a table, 100%20 of it"
    folder.mkdir()
    talk.head(900).write_parquet(folder / "one.parquet")
    talk.tail(-900).write_parquet(folder / "two.parquet", use_pyarrow=True)
    return folder


def named(spark, folder):
    """Return the table under a name in a catalog, a view of it."""
    spark.read.parquet(str(folder)).createOrReplaceTempView("talk")
    return spark.sql("SELECT what, who FROM talk")


ONLY_READ = {
    "a folder": lambda spark, folder: spark.read.parquet(str(folder)),
    "files": lambda spark, folder: spark.read.parquet(*map(str, sorted(folder.glob("*.parquet")))),
    "by its format": lambda spark, folder: spark.read.format("parquet").load(str(folder)),
    "some columns": lambda spark, folder: spark.read.parquet(str(folder)).select("who", "what").select("what", "who"),
    "a view": named,
    "its own schema": lambda spark, folder: spark.read.schema("who bigint, what string").parquet(str(folder)),
}
MORE = {
    "a filter": lambda frame: frame.where("what LIKE 'thank%'"),
    "a limit": lambda frame: frame.limit(100),
    "another order of parts": lambda frame: frame.repartition(2),
    "a union": lambda frame: frame.union(frame),
    "a cache": lambda frame: frame.cache(),
    "another column of that name": lambda frame: frame.selectExpr("who", "upper(what) AS what"),
    "columns exchanged": lambda frame: frame.selectExpr("what AS who", "who AS what"),
    "rows of a join": lambda frame: frame.join(frame.select("who").distinct(), "who"),
    "distinct rows": lambda frame: frame.distinct(),
    "what fails while it is planned": lambda frame: frame.selectExpr("who", "raise_error('late') AS what"),
}


@pytest.mark.parametrize("how", ONLY_READ)
def test_files_that_a_query_only_reads_are_read_here_and_give_the_release_of_their_rows(spark, talk, stored, how):
    """No job of Spark is run for it; the same grams as of the rows that Spark would write, and as locally."""
    frame = ONLY_READ[how](spark, stored)
    assert sorted(scanned_files(frame, NAMES)) == sorted(stored.glob("*.parquet"))
    corpus = vp.read(frame, user="who", text="what")
    ngrams = vp.NGrams(max_length=3, limit=4)
    jobs, _, release = counted(spark, lambda: ngrams.release(corpus, BUDGET, seed=1))
    assert jobs == 0
    assert len(release) > 10
    written = ngrams.release(vp.read(framed(spark, talk), user="who", text="what"), BUDGET, seed=1)
    local = ngrams.release(vp.read(stored, user="who", text="what"), BUDGET, seed=1)
    assert release.grams.equals(written.grams)
    assert release.grams.equals(local.grams)


@pytest.mark.parametrize("what", MORE)
def test_a_query_that_does_more_is_run(spark, stored, what):
    """Its files hold other rows than it gives."""
    frame = MORE[what](spark.read.parquet(str(stored)))
    assert scanned_files(frame, NAMES) is None
    frame.unpersist()


def test_rows_that_only_the_query_gives_are_released(spark, stored, monkeypatch):
    """A filter leaves one phrase of five; the twin that takes the files of any query releases what it left out."""
    frame = spark.read.parquet(str(stored)).where("what = 'see you soon'")
    union = vp.SetUnion(limit=4)
    assert "morning" not in union.release(vp.read(frame, user="who", text="what"), BUDGET, seed=1)
    monkeypatch.setattr(handover, "scanned_files", lambda frame, names: sorted(stored.glob("*.parquet")))
    assert "morning" in union.release(vp.read(frame, user="who", text="what"), BUDGET, seed=1)


def test_ways_of_reading_that_files_do_not_show_are_sparks(spark, talk, stored, tmp_path):
    """Options, other formats, columns in the names of folders, files twice, and a session that skips what is broken."""
    frame = spark.read.parquet(str(stored))
    assert scanned_files(spark.read.option("mergeSchema", True).parquet(str(stored)), NAMES) is None
    assert scanned_files(framed(spark, talk), NAMES) is None
    frame.write.json(str(tmp_path / "json"))
    assert scanned_files(spark.read.json(str(tmp_path / "json")), NAMES) is None
    frame.selectExpr("*", "who % 2 AS part").write.partitionBy("part").parquet(str(tmp_path / "parts"))
    assert scanned_files(spark.read.parquet(str(tmp_path / "parts")), NAMES) is None
    twice = spark.read.parquet(str(stored), str(stored))
    assert (len(scanned_files(twice, NAMES)), twice.count()) == (4, 2 * talk.height)
    for setting in LENIENT:
        spark.conf.set(setting, "true")
        try:
            assert scanned_files(frame, NAMES) is None
        finally:
            spark.conf.unset(setting)
    assert scanned_files(frame, NAMES) is not None


VALUES = {
    "texts": (["a", "b"], True),
    "truth values": ([True, False], True),
    "small numbers": (pa.array([1, 2], pa.int8()), True),
    "large texts": (pa.array(["a", "b"], pa.large_string()), True),
    "a dictionary": (pa.array(["a", "b"]).dictionary_encode(), True),
    "lists": ([["a", "b"], []], True),
    "lists of numbers": (pa.array([[1], [2, 3]], pa.large_list(pa.int16())), True),
    "dates": ([datetime.date(1500, 1, 1)] * 2, False),
    "times": ([datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)] * 2, False),
    "decimals": ([Decimal("1.50")] * 2, False),
    "fractions": ([0.5, 1.5], False),
    "bytes": ([b"a", b"b"], False),
    "unsigned numbers": (pa.array([1, 2], pa.uint32()), False),
    "lists of lists": ([[["a"]], []], False),
}


@pytest.mark.parametrize("values", VALUES)
def test_columns_whose_values_spark_and_others_read_alike(spark, tmp_path, values):
    """Any others go through Spark."""
    column, alike = VALUES[values]
    parquet.write_table(pa.table({"who": [1, 2], "what": column, "other": [0.5, 1.5]}), tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path / "t.parquet"))
    assert (scanned_files(frame, NAMES) is not None) == alike


def test_files_that_do_not_all_hold_the_columns_are_sparks(spark, talk, tmp_path):
    """Of another type or name, missing, damaged by now: what is made of these is for Spark to say."""
    talk.write_parquet(tmp_path / "one.parquet")
    two = tmp_path / "two.parquet"
    for other in (talk.rename({"what": "WHAT"}), talk.drop("what"), talk.cast({"who": pl.Int32})):
        other.write_parquet(two)
        frame = spark.read.schema("who bigint, what string").parquet(str(tmp_path))
        assert scanned_files(frame, NAMES) is None
    talk.write_parquet(two)
    frame = spark.read.parquet(str(tmp_path))
    assert scanned_files(frame, NAMES) is not None
    two.write_bytes(b"PAR1 and then nothing")
    assert scanned_files(frame, NAMES) is None
    with pytest.raises(SourceError, match="fails on Spark"):
        vp.SetUnion().release(vp.read(frame, user="who", text="what"), BUDGET)
    two.unlink()
    assert scanned_files(frame, NAMES) is None


def test_a_file_without_the_ending_is_sparks(spark, talk, tmp_path):
    """Voxpop goes by endings."""
    talk.write_parquet(tmp_path / "part-0")
    assert scanned_files(spark.read.parquet(str(tmp_path / "part-0")), NAMES) is None


def test_files_that_hold_too_much_are_read_within_the_limit_from_the_start(spark, stored, monkeypatch):
    """As soon as it shows, before or while they are read; nothing of a first attempt is left in the release."""
    frame, found, tried = spark.read.parquet(str(stored)), [], []
    real = handover.open_source
    monkeypatch.setattr(handover, "open_source", lambda *given, **more: tried.append(given) or real(*given, **more))
    least = handover.least_held
    for factor, shown, memory in ((16, True, None), (1 << 60, True, None), (1 << 60, False, None), (1, True, "1GiB")):
        monkeypatch.setattr(handover, "OF_ITS_BYTES", factor)
        monkeypatch.setattr(handover, "least_held", least if shown else lambda files, names: 0)
        corpus = vp.read(frame, user="who", text="what", memory=memory)
        words = vp.SetUnion(limit=4).release(corpus, BUDGET, seed=4).to_list()
        found.append((corpus.limit is None, len(tried), words))
    assert [free for free, _, _ in found] == [True, False, False, False]
    assert [times for _, times, _ in found] == [1, 1, 2, 2]
    assert all(words == found[0][2] for _, _, words in found)
    assert len(found[0][2]) > 5


@pytest.mark.parametrize("memory", [None, "1GiB"])
@pytest.mark.parametrize("seed", range(2))
def test_where_order_matters_files_and_rows_and_a_bound_give_the_same(spark, talk, tmp_path, monkeypatch, seed, memory):
    """Order-dependent rounds, sequences joined, and events in their order; rows lie elsewhere, in other files."""
    times = talk.with_row_index("at").with_columns(pl.col("at").cast(pl.Int64))
    mixed = times.sample(fraction=1.0, shuffle=True, seed=seed)
    for number in range(3):
        mixed.filter(pl.col("at") % 3 == number).write_parquet(tmp_path / f"{number}.parquet")
    frame = spark.read.parquet(str(tmp_path))
    assert scanned_files(frame, ["who", "what", "at"]) is not None
    union = vp.SetUnion(limit=3, weighting="l2-descent", rounds=2)
    words = vp.Sequences(max_length=6, max_gram=3, alphabet=["thank", "you", "much"], combine="concatenate")
    phrases = talk["what"].drop_nulls().value_counts(sort=True)["what"].head(4).to_list()
    events = vp.Sequences(max_length=4, max_gram=2, alphabet=phrases)
    found = []
    for files in (scanned_files, lambda frame, names: None):
        monkeypatch.setattr(handover, "scanned_files", files)
        texts = vp.read(frame, user="who", text="what", memory=memory)
        said = vp.read(frame, user="who", sequence="what", order="at", memory=memory)
        trees = [words.release(texts, vp.Budget(4), seed=seed), events.release(said, vp.Budget(4), seed=seed)]
        counts = [each.tree.counts.tolist() for each in trees]
        found.append((union.release(texts, BUDGET, seed=seed).to_list(), counts))
    assert found[0] == found[1]
    assert len(found[0][0]) > 5


def test_keys_of_several_types_come_back_as_of_rows_that_spark_writes(spark, tmp_path, monkeypatch):
    """Items of two columns, users of a string and a number."""
    rows = [(f"u{n % 40}", n % 3, "xyz"[n % 3], n % 2 == 0) for n in range(600)]
    table = pl.DataFrame(rows, schema={"a": pl.String, "b": pl.Int16, "c": pl.String, "d": pl.Boolean}, orient="row")
    table.write_parquet(tmp_path / "t.parquet")
    frame = spark.read.parquet(str(tmp_path))
    union = vp.SetUnion(limit=4)
    found = []
    for files in (scanned_files, lambda frame, names: None):
        monkeypatch.setattr(handover, "scanned_files", files)
        corpus = vp.read(frame, user=["a", "b"], items=["c", "d"])
        found.append(union.release(corpus, BUDGET, seed=1).to_arrow())
    assert found[0].equals(found[1])
    assert found[0].num_rows == 6


@pytest.mark.data
def test_clicks_are_read_from_their_file(spark, data_dir):
    """Real data: sequences of numbers."""
    path = data_dir / "msnbc.parquet"
    frame = spark.read.parquet(str(path))
    assert scanned_files(frame, ["user", "sequence"]) == [path]
    ngrams = vp.NGrams(max_length=3, limit=10, weighting="weighted")
    release = ngrams.release(vp.read(frame, user="user", sequence="sequence"), vp.Budget(1, 1e-7), seed=1)
    local = ngrams.release(vp.read(path, user="user", sequence="sequence"), vp.Budget(1, 1e-7), seed=1)
    assert release.grams.equals(local.grams)
