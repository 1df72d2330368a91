"""Tests of the files that are read from folders with hidden, temporary or empty files."""

import bz2
import gzip
import io
import json

import polars as pl
import pytest
from pyarrow.dataset import dataset

import voxpop as vp
from support.look import read_engine
from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.reading import remote
from voxpop.reading.wanted import Request

HIDDEN = ("_temporary/0/task/t.csv", ".ipynb_checkpoints/t.csv", "._t.csv", "_old.csv", "~$t.csv", "__MACOSX/t.csv")
TEMPORARY = ("t.csv.part", "t.csv~", "t.csv.tmp", "t.csv.crdownload", ".t.csv.crc", "#t.csv#", "t.csv._COPYING_")


def users_of(source, **options):
    """Return the number of users of a source."""
    return read_engine(source, user="who", items="what", **options).user_key.size


def write(folder, names, users):
    """Write a table with these users into each file."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("who,what\n" + "".join(f"{user},tea\n" for user in users))


@pytest.mark.parametrize("memory", [None, "1GiB"])
def test_hidden_and_temporary_files_are_skipped(tmp_path, capsys, memory):
    """Hidden and temporary files are skipped in folders, patterns and lists.

    One message reports their rounded number.
    """
    write(tmp_path / "t", ["t.csv", "more/u.csv", "_year=2026/v.csv"], range(3))
    write(tmp_path / "t", [*HIDDEN, *TEMPORARY], range(100, 200))
    (tmp_path / "t/_SUCCESS").touch()
    options = vp.ReadOptions(memory=memory)
    for source in (tmp_path / "t", str(tmp_path / "t/**/*"), [tmp_path / "t/more", tmp_path / "t"]):
        assert users_of(source, options=options) == 3
        said = capsys.readouterr().err
        assert said.count("fewer than 100 files with hidden or temporary names") == 1
        assert "_old" not in said
    assert users_of(tmp_path / "t", options=vp.ReadOptions(exact=True)) == 3
    assert "13 files with hidden" in capsys.readouterr().err


def test_a_hidden_file_that_is_named_is_read(tmp_path):
    """The path may contain a hidden folder, and a pattern may begin like a hidden name."""
    write(tmp_path, HIDDEN[:1], range(3))
    write(tmp_path, ["_old.csv"], range(5))
    for source, users in (("_old.csv", 5), ("_temporary", 3), ("_temp*/0/task/*.csv", 3), ("_*.csv", 5)):
        assert users_of(tmp_path / source) == users
    (tmp_path / "more").mkdir()
    write(tmp_path, ["more/_t.csv"], range(2))
    for source in ("more", "more/*.csv", "m*/*"):
        with pytest.raises(SourceError, match=r"no table.*hidden or temporary") as caught:
            users_of(tmp_path / source)
        assert "_t.csv" not in str(caught.value)


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("_delta_log/00000000000000000000.json", r"Delta.*vp\.read\(polars\.read_delta\("),
        ("metadata/v1.metadata.json", r"Iceberg.*polars\.scan_iceberg\("),
        ("metadata/00000-a.gz.metadata.json", "Iceberg"),
        (".hoodie/hoodie.properties", r"Hudi.*spark\.read\.format\(\"hudi\"\)"),
        ("_spark_metadata/0", r"Spark streaming.*spark\.read\.parquet"),
    ],
)
def test_tables_with_a_log_are_rejected_by_name(tmp_path, log, words):
    """Tables with a log are rejected as folders, patterns, files or partitions, and in a folder of several tables."""
    write(tmp_path / "shop/t", ["data/month=1/t.csv"], range(3))
    (tmp_path / "shop/t" / log).parent.mkdir()
    (tmp_path / "shop/t" / log).write_text("{}")
    for source in ("shop/t", "shop", "shop/t/data/*/*.csv", "shop/t/data/month=1/t.csv", "shop/t/data/month=1"):
        with pytest.raises(SourceError, match=words):
            users_of(tmp_path / source)
    with pytest.raises(SourceError, match=words):
        vp.ProfileMechanism.of(tmp_path / "shop/t", user="who")
    with pytest.raises(SourceError, match=words):
        users_of(dataset(tmp_path / "shop/t/data", format="csv"))
    with pytest.raises(SourceError, match=words.partition(".")[0]):
        remote.check_no_remote_log(f"{tmp_path}/shop/t/")


def test_hidden_files_at_an_address_are_skipped(tmp_path, capsys):
    """The same rule applies to hidden files at an address and in local folders. The folder represents a bucket."""
    for name, user in (("a.parquet", 1), ("_old.parquet", 2), ("_temporary/b.parquet", 3), ("_year=1/c.parquet", 4)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pl.DataFrame({"who": [user], "what": ["tea"]}).write_parquet(tmp_path / name)
    request = Request.of(user="who", items="what")
    frames = remote._streamed(lambda: remote._parquet(f"{tmp_path}/"), request, f"{tmp_path}/", request.names)
    assert sorted(pl.concat(frames)["who"]) == [1, 4]
    assert "fewer than 100 files with hidden or temporary names" in capsys.readouterr().err


BLANK = {"nothing": b"", "a mark": b"\xef\xbb\xbf", "blank lines": b"\n\r\n \n", "UTF-16": "\ufeff\n".encode("utf-16")}


@pytest.mark.parametrize("content", BLANK.values(), ids=BLANK)
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.tsv.bz2", "t.jsonl", "t.json", "t.ndjson.gz"])
def test_empty_files_are_rejected(tmp_path, name, content):
    """An empty file is rejected, because failed jobs leave such files. A table without rows is read."""
    packed = {"gz": gzip.compress, "bz2": bz2.compress}.get(name.rpartition(".")[2], bytes)
    (tmp_path / name).write_bytes(packed(content))
    for source in (tmp_path / name, tmp_path, io.BytesIO((tmp_path / name).read_bytes())):
        with pytest.raises(SourceError, match="no user column"):
            users_of(source)
    write(tmp_path, ["rows.csv"], [])
    (tmp_path / "rows.json").write_text("[]")
    assert users_of(tmp_path / "rows.csv") == users_of(tmp_path / "rows.json") == 0


def test_an_empty_file_charges_nothing(tmp_path):
    """The command rejects the file before the ledger is charged."""
    from voxpop.cli import main

    (tmp_path / "t.csv").touch()
    ledger = vp.Ledger(tmp_path / "ledger.json")
    ledger.open("posts", vp.Budget(3, 1e-6), create=True)
    call = ["items", f"{tmp_path}/t.csv", "--user", "who", "--items", "what", "--epsilon", "1", "--delta", "1e-8"]
    assert main([*call, "-o", f"{tmp_path}/o", "--ledger", f"{tmp_path}/ledger.json", "--dataset", "posts"]) == 5
    assert not ledger.account("posts").entries


@pytest.mark.parametrize("name", ["u.data", "u.user", "t.txt", "t.log", "t", "t.dat.gz"])
def test_files_with_other_suffixes_are_read_with_a_given_delimiter(tmp_path, name):
    """The message names the option, and suggests standard input as an alternative."""
    content = b"who\twhat\n1\ttea\n2\ttea\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.raises(SourceError, match=r"--delimiter tab"):
        users_of(tmp_path / name)
    for source in (tmp_path / name, tmp_path, str(tmp_path / "*")):
        assert users_of(source, csv=vp.CSV(delimiter="\t")) == 2
    (tmp_path / "rows.jsonl").write_text(json.dumps({"who": 1, "what": "tea"}))
    with pytest.raises(InputError, match="Remove csv="):
        users_of(tmp_path / "rows.jsonl", csv=vp.CSV(delimiter="\t"))


def test_row_numbers_are_exact_only_on_request(tmp_path):
    """Row numbers are rounded unless exact numbers are requested, because the number of rows above a row is private."""
    rows = [{"who": number, "what": "tea"} for number in range(12_345)] + [{"who": None, "what": "tea"}]
    pl.DataFrame(rows).write_parquet(tmp_path / "t.parquet")
    pl.DataFrame(rows).write_csv(tmp_path / "t.csv")
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for source in (rows, pl.DataFrame(rows), *(tmp_path / f"t.{end}" for end in ("parquet", "csv", "jsonl"))):
        with pytest.raises(SourceError, match=r"about row 12,000 \(exactly with exact=True, --exact\)") as caught:
            users_of(source)
        assert "12,346" not in str(caught.value)
        with pytest.raises(SourceError, match="row 12,346"):
            users_of(source, options=vp.ReadOptions(exact=True))


@pytest.mark.parametrize("options", [{}, {"columns": ["city"]}, {"text": ["comment"]}])
def test_a_profile_shows_no_first_row_of_csv(tmp_path, options, capsys):
    """The first row is data if the file has no header, and neither the error nor the plan contains it."""
    (tmp_path / "t.csv").write_text("4711,ann's badge is 470,Delft\n4712,bob,Lund\n")
    with pytest.raises(ColumnError, match="first row of CSV must name") as caught:
        vp.profile(tmp_path / "t.csv", user="customer", budget=vp.Budget(1, 1e-7), **options)
    said = f"{caught.value}{capsys.readouterr().err}"
    assert not any(word in said for word in ("470", "Delft", "4711"))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nan.jsonl", '{"who": 1, "what": "tea"}\n{"who": 2, "what": NaN}\n', "NaN and Infinity are not JSON"),
        ("lines.json", '{\n  "who": 1,\n  "what": "tea"\n}\n{\n  "who": 2,\n  "what": "tea"\n}\n', "jq -c"),
        ("split.json", '{"columns": ["who", "what"], "index": [0], "data": [[1, "tea"]]}', "orient="),
        ("index.json", '{"0": {"who": 1, "what": "tea"}}', "orient="),
        ("values.json", '[[1, "tea"]]', "orient="),
        ("columns.json", '{"who": {"0": 1, "1": 2}, "what": {"0": "tea", "1": "tea"}}', "orient="),
    ],
)
def test_other_forms_of_json_are_rejected(tmp_path, name, content, words):
    """The cases are numbers in Python's own notation, objects over several lines, and columns as pandas writes them."""
    (tmp_path / name).write_text(content)
    with pytest.raises((SourceError, ColumnError), match=words):
        users_of(tmp_path / name)


def test_paths_expanded_by_a_shell_are_read(tmp_path, capsys):
    """Hidden and temporary files are skipped if there are several paths on the command line.

    A single path is read even if its name is hidden or temporary.
    """
    from voxpop.cli import main

    write(tmp_path, ["t.csv"], range(3000))
    write(tmp_path, ["_old.csv", "_temporary/t.csv", "t.csv.tmp"], range(3000, 6000))
    call = ["--user", "who", "--items", "what", "--epsilon", "1", "--delta", "1e-8", "--seed", "1", "--overwrite"]
    out = ["-o", f"{tmp_path}/out"]
    (tmp_path / "t.csv").write_text("who,what\n" + "".join(f"{user},milk\n" for user in range(3000)))
    assert main(["items", *map(str, sorted(tmp_path.iterdir())), *call, *out]) == 0
    assert vp.load(tmp_path / "out").to_list() == ["milk"]
    assert "fewer than 100 of the paths with hidden or temporary names" in capsys.readouterr().err
    assert main(["items", f"{tmp_path}/_temporary", *call, *out]) == 0
    assert vp.load(tmp_path / "out").to_list() == ["tea"]
