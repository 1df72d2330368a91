"""Regression tests for faults that fuzzing and the canaries found."""

import polars as pl
import pyarrow as pa
import pytest

from support.look import read_engine
from voxpop.errors import ColumnError, SourceError


def test_users_with_numbers_in_one_file_and_strings_in_another_are_rejected(tmp_path):
    """For such files, the reader used to raise an error of pyarrow."""
    pl.DataFrame({"who": [7], "text": ["a"]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"who": ["7"], "text": ["a"]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(ColumnError, match='"who" contains whole numbers in one table and strings in another'):
        read_engine(tmp_path, user="who", text="text")


def test_a_large_64_bit_number_is_not_read_as_negative(tmp_path):
    """The reader used to treat 2^64 - 1 in one file and -1 in another file as one user."""
    pl.DataFrame({"who": pl.Series([2**64 - 1], dtype=pl.UInt64), "text": ["a"]}).write_parquet(tmp_path / "a.parquet")
    pl.DataFrame({"who": [-1], "text": ["b"]}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(ColumnError, match="from 2\\^63 on"):
        read_engine(tmp_path, user="who", text="text")
    one = pl.DataFrame({"who": pl.Series([2**64 - 1, 3], dtype=pl.UInt64), "text": ["a", "b"]})
    assert read_engine(one, user="who", text="text").user_key.tolist() == [2**64 - 1, 3]


@pytest.mark.parametrize("content", ["tokens", "items", "sequence"])
def test_lists_of_lists_are_rejected(content):
    """For lists of lists, the reader used to raise an error of pyarrow about kernels."""
    table = pa.table({"who": [1], "text": pa.array([[["a"]]], pa.list_(pa.list_(pa.binary())))})
    with pytest.raises(ColumnError, match=r"got list|contains list"):
        read_engine(table, user="who", **{content: "text"})


def test_bytes_of_a_header_are_not_kept_in_an_exception(tmp_path):
    """The context of the reader's error used to be a UnicodeDecodeError that contained all bytes of the header."""
    (tmp_path / "t.csv").write_bytes(b"who,text\nann,secret \xe9\n")
    with pytest.raises(SourceError) as caught:
        read_engine(tmp_path / "t.csv", user="who", text="text")
    error: BaseException | None = caught.value
    while error is not None:
        assert "secret" not in repr(error)
        error = error.__cause__ or error.__context__


def test_column_names_that_are_not_utf8_are_reported(tmp_path):
    """For invalid column names in Parquet and JSON lines, the reader used to raise an error of pyarrow."""
    pl.DataFrame({"who": ["ann"], "text": ["a"]}).write_parquet(tmp_path / "t.parquet", compression="uncompressed")
    (tmp_path / "t.jsonl").write_bytes(b'{"who": "ann", "text": "a"}\n')
    for path in (tmp_path / "t.parquet", tmp_path / "t.jsonl"):
        path.write_bytes(path.read_bytes().replace(b"text", b"te\xe9t"))
        with pytest.raises(SourceError):
            read_engine(path, user="who", text="text")
