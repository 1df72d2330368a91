"""Types come from a schema, never from values: the rows of one user change no type, no spelling and no other row."""

import json

import pyarrow as pa
import pytest
from pyarrow import parquet

import voxpop as vp
from support.look import read_engine
from voxpop.engine.spark.reading import open_frame
from voxpop.errors import ColumnError, SourceError
from voxpop.reading.wanted import Wanted

BUDGET = vp.Budget(4, 1e-8)
ROADS = pytest.mark.parametrize("partitions", [2, None], ids=["spread", "handed over"])
CANARY = "xylophonecanary"


def lines(path, rows):
    """Write rows as JSON lines; a string is written as it is."""
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return str(path)


def released(spark, path, partitions, types=None, **columns):
    """Return schema, keys and items of a release."""
    frame = open_frame(spark, [path], Wanted.of(**columns, types=types))
    release = vp.SetUnion(limit=2, weighting=vp.weightings.Weighted()).release(
        read_engine(frame, options=vp.ReadOptions(partitions=partitions), **columns), BUDGET, seed=1
    )
    return frame.schema.simpleString(), str(release.to_arrow().schema), release.to_list()


@ROADS
def test_rows_of_json_change_neither_types_nor_spellings(spark, tmp_path, partitions):
    """Whole numbers stay their digits, whatever other users hold or are called."""
    rows = [{"who": number, "what": number % 2 + 7} for number in range(400)]
    expected = released(spark, lines(tmp_path / "a.jsonl", rows), partitions, user="who", items="what")
    assert expected[0] == "struct<who:string,what:array<string>>"
    assert expected[2] == ["7", "8"]
    odd = ["tea", 2**63, -1, True, "7", None, "", "2026-11-23", 470.125, 7.0]
    more = [{"who": 10**6 + number, "what": each} for number, each in enumerate(odd)]
    more += [{"who": each, "what": 7} for each in odd if each not in (None, "")]
    path = lines(tmp_path / "b.jsonl", [*more, *rows])
    assert released(spark, path, partitions, user="who", items="what") == expected


@ROADS
def test_lists_of_json_are_lists_of_strings(spark, tmp_path, partitions):
    """A null is left out, as in any list."""
    rows = [{"who": number, "what": ["a", number % 2, None, True]} for number in range(400)] + [{"who": 1}]
    path = lines(tmp_path / "a.jsonl", rows)
    schema, _, found = released(spark, path, partitions, user="who", tokens="what")
    assert schema == "struct<who:string,what:array<string>>"
    assert found == ["0", "1", "a", "true"]


MISFITS = {
    "an object": {"who": 1, "what": {CANARY: 1}},
    "a list of objects": {"who": 1, "what": [{CANARY: 470}]},
    "a list as a user": {"who": [CANARY], "what": "x"},
    "no JSON": f'{{"who": 1, "what": "{CANARY}',
}


@ROADS
@pytest.mark.parametrize("misfit", MISFITS)
def test_a_value_that_does_not_fit_is_an_error_that_quotes_nothing(spark, tmp_path, partitions, misfit, capfd):
    """It is not read as something else, nor left out."""
    rows = [{"who": number, "what": 7} for number in range(40)]
    path = lines(tmp_path / "a.jsonl", [*rows, MISFITS[misfit]])
    with pytest.raises(SourceError) as caught:
        released(spark, path, partitions, user="who", items="what")
    told = f"{caught.value} {caught.value.__cause__} {caught.value.__context__}"
    assert CANARY not in told
    assert "470" not in told
    assert "counted within one batch" in told


@ROADS
def test_a_text_where_a_list_is_wanted_is_an_error(spark, tmp_path, partitions):
    """Nor is a list cut out of its letters."""
    path = lines(tmp_path / "a.jsonl", [{"who": 1, "what": ["a"]}, {"who": 2, "what": CANARY}])
    with pytest.raises(SourceError, match='"what" is not a list') as caught:
        released(spark, path, partitions, user="who", tokens="what")
    assert CANARY not in str(caught.value)


@ROADS
def test_csv_is_strings_and_its_rows_are_as_wide_as_its_header(spark, tmp_path, partitions):
    """Numbers, fractions and truth values of one user do not change those of others."""
    rows = [f"{number},{number % 2 + 7}" for number in range(400)]
    path, columns = tmp_path / "a.csv", {"user": "who", "items": "what"}
    path.write_text("\n".join(["who,what", *rows]))
    expected = released(spark, str(path), partitions, **columns)
    assert expected[0] == "struct<who:string,what:string>"
    path.write_text("\n".join(["who,what", "x,1.5", "true,007", "1e3,9223372036854775808", *rows]))
    assert released(spark, str(path), partitions, **columns) == expected
    for extra in (f"1,{CANARY},3", CANARY):
        path.write_text("\n".join(["who,what", *rows, extra]))
        with pytest.raises(SourceError) as caught:
            released(spark, str(path), partitions, **columns)
        assert CANARY not in str(caught.value)


@ROADS
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_the_caller_may_declare_types(spark, tmp_path, partitions, ending):
    """Prices as decimals; a value that is none is an error without the value."""
    path, how = tmp_path / f"a.{ending}", {"user": "who", "items": "what", "types": {"what": "decimal(9, 2)"}}

    def write(prices):
        rows = [{"who": number, "what": charge} for number, charge in enumerate(prices)]
        texts = [f"{row['who']},{row['what']}" for row in rows] if ending == "csv" else map(json.dumps, rows)
        path.write_text("\n".join([*(["who,what"] if ending == "csv" else []), *texts]))
        return str(path)

    schema, kinds, found = released(spark, write(["19.99", "5"] * 200), partitions, **how)
    assert "decimal(9,2)" in schema
    assert "decimal128(9, 2)" in kinds
    assert list(map(str, found)) == ["19.99", "5.00"]
    for wrong in (CANARY, "1.125"):
        with pytest.raises(SourceError, match=r'"what" does not fit decimal128\(9, 2\)') as caught:
            released(spark, write(["19.99", wrong] * 20), partitions, **how)
        assert wrong not in str(caught.value)


def test_files_of_csv_with_columns_in_another_order_are_refused(spark, tmp_path):
    """Spark takes columns by their place, so users and items of the second file would be exchanged."""
    (tmp_path / "a.csv").write_text("who,what\n1,tea\n2,tea\n")
    (tmp_path / "b.csv").write_text("what,who\ntea,3\ntea,4\n")
    with pytest.raises(SourceError, match=r"CSV|fails on Spark"):
        released(spark, str(tmp_path / "*.csv"), None, user="who", items="what")


def collated(spark):
    """Return one user in 512 spellings."""
    ids = [""]
    for letter in "abcdefghi":
        ids = [each + case for each in ids for case in (letter, letter.upper())]
    rows = spark.createDataFrame([(each, "one person only", 1) for each in ids], "who string, what string, n int")
    return rows.selectExpr("collate(who, 'UTF8_LCASE') AS who", "collate(what, 'UNICODE_CI') AS what", "n")


@pytest.mark.parametrize("user", ["who", ["n", "who"], ["who", "n"]])
@ROADS
def test_users_with_a_collation_are_refused(spark, user, partitions):
    """One user of Spark would be 512 of voxpop; the error names the column, the collation and what to do."""
    frame = collated(spark)
    assert frame.select("who").distinct().count() == 1
    with pytest.raises(ColumnError, match=r'"who" has the collation UTF8_LCASE.*collate\(`who`, \'UTF8_BINARY\'\)'):
        read_engine(frame, user=user, text="what", options=vp.ReadOptions(partitions=partitions))
    exact = frame.selectExpr("collate(who, 'UTF8_BINARY') AS who", "what", "n")
    assert (
        vp.SetUnion()
        .release(read_engine(exact, user="who", text="what", options=vp.ReadOptions(partitions=partitions)), BUDGET)
        .to_list()
    )
    folded = frame.selectExpr("lower(collate(who, 'UTF8_BINARY')) AS who", "what", "n")
    read = read_engine(folded, user="who", text="what", options=vp.ReadOptions(partitions=partitions))
    assert vp.SetUnion().release(read, BUDGET).to_list() == []


@ROADS
def test_items_with_a_collation_keep_their_spelling(spark, partitions):
    """Spellings that a collation regards as equal stay items of their own: none depends on another user's."""
    rows = [(number, "Tea" if number % 2 else "tEA") for number in range(800)]
    frame = spark.createDataFrame(rows, "who long, what string")
    plain = frame.selectExpr("who", "what", "array(what) AS list")
    other = frame.selectExpr("who", "collate(what, 'UTF8_LCASE') AS what", "array(collate(what, 'UTF8_LCASE')) AS list")
    assert other.select("what").distinct().count() == 1
    union = vp.SetUnion(limit=1, weighting=vp.weightings.Weighted())
    for how in ({"items": "what"}, {"tokens": "list"}):
        one, two = (
            union.release(
                read_engine(each, user="who", options=vp.ReadOptions(partitions=partitions), **how), BUDGET, seed=1
            )
            for each in (plain, other)
        )
        assert one.to_list() == two.to_list() == ["Tea", "tEA"]


@ROADS
def test_rows_are_those_of_the_query_and_not_those_of_its_files(spark, tmp_path, partitions):
    """Files that a scan skips, and columns that Spark finds by their number in the file."""
    folder = tmp_path / "skipped"
    folder.mkdir()
    parquet.write_table(pa.table({"who": range(100), "text": ["see you soon"] * 100}), folder / "part-0.parquet")
    opted = pa.table({"who": range(1000, 1500), "text": ["opted out"] * 500})
    parquet.write_table(opted, folder / "_metadata_optout.parquet")
    frame = spark.read.parquet(str(folder))
    read = read_engine(frame, user="who", text="text", options=vp.ReadOptions(partitions=partitions))
    assert vp.SetUnion().release(read, BUDGET, seed=1).to_list() == ["see", "soon", "you"]

    from pyspark.sql import types

    fields = {"who": (pa.int64(), 4), "text": (pa.string(), 3), "person": (pa.int64(), 2)}
    schema = pa.schema(
        [pa.field(name, kind, metadata={"PARQUET:field_id": str(n)}) for name, (kind, n) in fields.items()]
    )
    table = pa.table({"who": range(500), "text": ["secret of one person"] * 500, "person": [7] * 500}, schema=schema)
    parquet.write_table(table, tmp_path / "numbered.parquet")
    wanted = [("who", types.LongType(), 2), ("text", types.StringType(), 3)]
    given = types.StructType([types.StructField(name, kind, True, {"parquet.field.id": n}) for name, kind, n in wanted])
    setting = "spark.sql.parquet.fieldId.read.enabled"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "true")
    try:
        frame = spark.read.schema(given).parquet(str(tmp_path / "numbered.parquet"))
        assert frame.select("who").distinct().count() == 1
        read = read_engine(frame, user="who", text="text", options=vp.ReadOptions(partitions=partitions))
        assert vp.SetUnion().release(read, BUDGET, seed=1).to_list() == []
    finally:
        spark.conf.set(setting, before)


def test_nothing_here_looks_into_spark_but_for_one_check():
    """Names that begin with an underscore are Spark's own, and change without notice."""
    import re
    from pathlib import Path

    import voxpop.engine.spark

    text = "\n".join(path.read_text() for path in sorted(Path(voxpop.engine.spark.__file__).parent.glob("*.py")))
    used = re.findall(r"\b_(?:jdf|jvm|jsc|jsparkSession|sc|explain_string)\b", text)
    assert used.count("_jdf") == len(used) == 2  # `reading.check_repeatable`, once in its docstring
