"""Tests that, because types and spellings are public, one user's rows do not affect other users in any source."""

import json
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import voxpop as vp
from support.look import read_engine
from support.sources import NAMES, READINGS, all_forms, check_one_user
from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.files.progress import exactly
from voxpop.reading import text_files as json_lines
from voxpop.reading.sources import types_table
from voxpop.reading.types import Column, array_of_objects, spelling_of

FORMS = dict(all_forms())
MOMENT = 1_700_000_000_000_000_000
"""A time in nanoseconds that floating-point numbers cannot distinguish from the next nanosecond."""
numbers = st.integers(-(2**70), 2**70) | st.sampled_from([0, 7, 2**53 + 1, 2**63, MOMENT, MOMENT + 1])
fractions = st.floats(allow_nan=False, allow_infinity=False)
words = st.text("ab7.-é[{", max_size=4) | st.sampled_from(["tea", "2026-11-22", "7", "1.50", "true", "[1]"])
json_values = numbers | fractions | words | st.booleans() | st.none()


@pytest.mark.parametrize(
    ("theirs", "own", "reading"),
    [
        ([(1, "pay", MOMENT), (1, "buy", MOMENT + 100)], (2, "x", 1.5), "events"),
        ([(1, Decimal("19.99"), 0)], (2, Decimal("1234567.125"), 0), "items"),
        ([(1, 7, 0)], (2, "tea", 0), "items"),
    ],
)
def test_a_reader_that_infers_types_is_detected(theirs, own, reading):
    """In a deliberately broken variant, polars infers the types of columns from all rows."""

    def inferring(rows, **columns):
        table = pl.DataFrame(rows, schema=list(NAMES), orient="row", strict=False, infer_schema_length=None)
        return read_engine(table, **columns)

    with pytest.raises(AssertionError):
        check_one_user(inferring, lambda rows: rows, theirs, [own], READINGS[reading])


@given(
    st.lists(json_values | st.lists(words | numbers), max_size=6),
    st.sampled_from(["x", ["x"]]),
)
@example([None], ["x"])
@settings(max_examples=200, deadline=None)
def test_both_decoders_of_json_agree(held, last):
    """Decoding by blocks and decoding by lines give the same strings and the same nulls in columns of lists."""
    data = "".join(json.dumps({"a": each}) + "\n" for each in [*held, last]).encode()
    for lists in (False, None, True):
        columns = [Column("a", lists=lists)]
        found = []
        for few in (0, 1 << 30):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(json_lines, "FEW_BYTES", few)
                try:
                    found.append(json_lines.json_batch(data, columns, "here").column(0).to_pylist())
                except SourceError as error:
                    found.append(str(error))
        assert found[0] == found[1]


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        (7, "7"),
        (True, "true"),
        (7.0, "7"),
        (0.1, "0.1"),
        (1e-9, "0.000000001"),
        (Decimal("5.00"), "5"),
        (Decimal("1E+3"), "1000"),
        (b"\x01\xff", "01ff"),
        (float("nan"), None),
        (2**80, str(2**80)),
    ],
)
def test_the_spelling_of_a_value_follows_a_fixed_rule(value, spelled):
    """The spelling depends only on the value."""
    assert spelling_of(value) == spelled


def test_the_error_for_an_invalid_value_names_the_row_and_not_the_value(tmp_path):
    """The cases are declared types, fractional times, and objects without a spelling."""
    rows = [{"who": number, "what": "1.25", "at": number} for number in range(2000)]
    rows[1234] = {"who": 1234, "what": "kanarienvogel", "at": 918.5}
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for source, where in ((tmp_path / "rows.jsonl", "rows.jsonl"), (rows, "the table")):
        for columns, error in (
            ({"items": "what", "types": {"what": "decimal(12, 2)"}}, "does not fit decimal128"),
            ({"sequence": "what", "order": "at"}, "neither an integer nor an ISO 8601"),
        ):
            with pytest.raises(SourceError, match=rf"{where}, row 1,235: the value in the column .*{error}") as caught:
                vp.read(source, user="who", **columns, options=vp.ReadOptions(exact=True))
            assert "kanarienvogel" not in str(caught.value)
            assert "918" not in str(caught.value)


def test_declared_types_are_restored():
    """The values of the release are Python objects, and its columns have the declared types."""
    rows = [{"who": number, "price": "19.990", "day": "2026-11-22"} for number in range(3000)]
    data = vp.read(rows, user="who", items=["price", "day"], types={"price": "decimal(12, 2)", "day": "date"})
    release = vp.Items(max_items_per_user=1).release(data, vp.Budget(1, 1e-8))
    assert [(str(charge), str(day)) for charge, day in release] == [("19.99", "2026-11-22")]
    assert pa.types.is_decimal(release.to_arrow().schema.field("price").type)


@pytest.mark.parametrize(
    ("types", "error", "words"),
    [
        ({"nobody": "int64"}, InputError, "not read"),
        ({"what": "klingon"}, InputError, "no known type"),
        ("int64", InputError, "must be a dictionary"),
    ],
)
def test_invalid_declarations_are_rejected(types, error, words):
    """Invalid declarations raise an error before anything is read."""
    with pytest.raises(error, match=words):
        vp.read([{"who": 1, "what": 2}], user="who", items="what", types=types)


def test_declared_types_cannot_contradict_a_typed_source():
    """If a source declares another type, the caller must cast it."""
    with pytest.raises(ColumnError, match="declares int64"):
        vp.read(pa.table({"who": [1], "what": [2]}), user="who", items="what", types={"what": "string"})


def test_objects_without_a_spelling_are_rejected():
    """The error names the type of the object."""
    with pytest.raises(SourceError, match=r"row 3: .*type object"), exactly(True):
        array_of_objects(["a", "b", object()], Column("what"), "the table", 0)


def test_the_page_lists_all_sources(pytestconfig):
    """The table on the page equals the table of the registry."""
    assert types_table() in (pytestconfig.rootpath / "docs/guides/types.md").read_text()
