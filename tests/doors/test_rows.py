"""Tests of the lemma that a row's meaning depends only on the row and on declarations (docs/privacy/rows.md).

The declarations are public. The rows of another user are in the same file or table, or in a separate one with its own
schema. Blocks have a few bytes or rows, memory is limited or unlimited, and both decoders of JSON are used.
"""

import datetime as dt
import os
import tempfile
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import voxpop as vp
from support import sources as forms_module
from support.look import read_engine
from support.sources import (
    LISTS,
    READINGS,
    SEVERAL,
    UNDECLARED,
    all_forms,
    check_one_user,
    check_same,
    check_subsets,
    outcome,
    seen_by_others,
)
from voxpop.reading import columns as column_module
from voxpop.reading import files, tables, text_files, wanted
from voxpop.reading.keys import family
from voxpop.reading.sources import SOURCES

FORMS = dict(all_forms())
FEW = 20 if "VOXPOP_EXAMPLES" in os.environ else 6
"""The number of generated examples of each source. `.ci/run` draws more examples, and different ones each time."""
MOMENT = 1_700_000_000_000_000_000
"""A time in nanoseconds that floating-point numbers cannot distinguish from the next nanosecond."""
TIE = 156535310851351.62
"""Two decimal numbers of the same length that are equally near to this double."""

numbers = st.integers(-(2**70), 2**70) | st.sampled_from([0, 7, 2**53 + 1, 2**63, MOMENT, MOMENT + 1])
fractions = st.floats(allow_nan=False, allow_infinity=False) | st.integers(2**49, 2**56).map(lambda n: n / 8)
decimals = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=3)
parts = st.sampled_from(["a", "b7", "\r\n", "\r", "\n", '"', ",", "\t", "é", "\U0001f600", "[", "{", "-", ".5", " "])
words = st.lists(parts, max_size=4).map("".join) | st.sampled_from(
    ["tea", "2026-11-22", "7", "1.50", "true", "[1]", "", "NaN", "-0", "x" * 300, "2026-11-22 05:56:10"]
)
values = numbers | fractions | decimals | words | st.booleans() | st.none() | st.sampled_from([TIE, -0.0])
times = st.integers(MOMENT, MOMENT + 3)
small = st.integers(0, 4)
others = st.lists(st.tuples(small, values, times), min_size=1, max_size=8)
owners = st.sampled_from([10**6, "x", 2.5, True, 2**63, Decimal("7.5"), -1, "x\r\ny"])
"""Users that no other row names, under any spelling."""
own_rows = st.lists(st.tuples(values, values), min_size=1, max_size=4)
sizes = st.sampled_from([1, 2, 3, 64])
"""Numbers of rows in a batch."""
blocks = st.sampled_from([1, 5, 31, 49, 80, 111, 1 << 22])
"""Numbers of bytes in a block."""


@contextmanager
def divided(rows, block, at_once):
    """Divide sources into batches and blocks of these sizes, and decode JSON by blocks or line by line."""
    with pytest.MonkeyPatch.context() as patch:
        for module, names in (
            (wanted, ("_ROWS_AT_ONCE", "_ITEMS_AT_ONCE")),
            (tables, ("FEW_ROWS",)),
            (column_module, ("PORTION",)),
            (files, ("BLOCK", "SMALL_BLOCK")),
        ):
            for name in names:
                patch.setattr(module, name, rows if "ROWS" in name or "ITEMS" in name else block)
        patch.setattr(text_files, "FEW_BYTES", 0 if at_once else 1 << 30)
        yield


def test_every_source_of_the_registry_has_forms():
    """Every source of the registry has a form, so that the tests of this file also test a new source."""
    assert set(forms_module.FORMS) == {each.name for each in SOURCES}
    assert set(SEVERAL) == {"files", "pyarrow.dataset", "rows"}  # all other sources have one schema


def crlf(count):
    """Return rows of equal lengths with line ends in their cells."""
    return [(number, "\r\n", MOMENT) for number in range(count)]


@pytest.mark.parametrize("name", FORMS)
@given(
    rows=others,
    own=own_rows,
    who=owners,
    reading=st.sampled_from([*READINGS, *LISTS]),
    size=sizes,
    block=blocks,
    at_once=st.booleans(),
    limited=st.booleans(),
)
@example(crlf(8), [("x", MOMENT)], 10**6, "items", 64, 49, True, False)  # a line feed was lost at the end of a block
@example(crlf(8), [("xy", MOMENT)], 10**6, "items", 64, 49, True, True)
@example(crlf(8), [("xyz", MOMENT)], "xy", "composite", 64, 80, True, False)
@example([(1, TIE, MOMENT)], [("\U0001f600", 1)], 10**6, "items", 64, 1 << 22, True, False)  # another decoder
@example([(1, 1, MOMENT), (1, 0, MOMENT + 1)], [("x", 1.5)], -1, "events", 1, 9, True, False)
@example([(1, Decimal("19.99"), MOMENT)], [(Decimal("1234567.125"), MOMENT)], 10**6, "items", 64, 99, True, True)
@example([(1, 7, MOMENT)], [(2**63, MOMENT)], 10**6, "composite", 64, 99, False, False)
@example([(0, None, MOMENT)], [(0, 0)], 10**6, "events", 1, 1, False, False)  # only the added user has an event
@settings(max_examples=FEW, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_row_means_the_same_among_any_other_rows(name, rows, own, who, reading, size, block, at_once, limited):
    """One user's rows affect no other user, and permutations and subsets of users do not affect the remaining users."""
    form = FORMS[name]
    if reading in LISTS and not form.lists:
        return
    if rows == crlf(8) and not form.text:  # These rows show errors at the ends of blocks of bytes.
        return

    def fit(value):
        if form.declared:
            return value if type(value) is int and abs(value) < 2**63 else 7
        return value if form.holds(value) else str(value)[:40]

    def listed(row):
        return (row[0], [row[1], row[1], None], row[2]) if reading in LISTS else row

    theirs = [listed(tuple(map(fit, row))) for row in rows]
    mine = [listed((10**6 if form.declared else fit(who), fit(what), fit(at))) for what, at in own]
    read = partial(read_engine, options=vp.ReadOptions(memory="1GiB" if limited else None, progress=False))
    with tempfile.TemporaryDirectory() as folder, divided(size, block, at_once):
        make, columns = lambda some: form.make(some, Path(folder)), {**READINGS, **LISTS}[reading]
        whole = check_one_user(read, make, theirs, mine, columns)
        check_subsets(read, make, theirs, columns, whole)


TYPED = {
    pa.int64(): st.integers(0, 9),
    pa.int32(): st.integers(0, 9),
    pa.uint64(): st.integers(0, 9),
    pa.string(): st.sampled_from(["0", "1", "7", "2026-01-01", "true", "61", "", "7.5"]),
    pa.large_string(): st.sampled_from(["0", "7", "tea"]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.just(dt.date(2026, 1, 1)),
    pa.binary(): st.sampled_from([b"a", b"\x07"]),
    pa.decimal128(4, 2): st.sampled_from([Decimal("7.00"), Decimal("19.99"), Decimal("7.50")]),
    pa.decimal128(12, 3): st.sampled_from([Decimal("7.000"), Decimal("1234567.125")]),
    pa.timestamp("us"): st.just(dt.datetime(2026, 1, 1)),
    pa.timestamp("ns"): st.just(dt.datetime(2026, 1, 1)),
    pa.timestamp("us", "UTC"): st.just(dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
    pa.float64(): st.sampled_from([7.0, 7.5]),
    pa.null(): st.none(),
}
"""Types and values. Some values have the same spelling."""


@st.composite
def typed_parts(draw):
    """Draw rows with separate types. The contents may be null."""
    kinds = tuple(draw(st.sampled_from(list(TYPED))) for _ in range(3))
    who, what, at = (TYPED[kind] for kind in kinds)
    rows = draw(st.lists(st.tuples(who, what | st.none(), at), min_size=1, max_size=3))
    return rows, kinds, draw(st.booleans())


def part(kind, *values, owner=1, ids=None, coded=False):
    """Return one part with the given items."""
    return [(owner, value, number) for number, value in enumerate(values)], (ids or pa.int64(), kind, pa.int64()), coded


WIDE = part(pa.decimal128(12, 3), Decimal("1234567.125"), owner=10**6)
NARROW = part(pa.decimal128(4, 2), Decimal("19.99"))
TEXT = part(pa.string(), "a", None)
DAY = dt.date(2026, 1, 1)
DATED = part(pa.string(), "a", owner=DAY, ids=pa.date32())
SPELLED = part(pa.string(), "b", owner=str(DAY), ids=pa.string())


@pytest.mark.parametrize(("source", "name"), [(source, name) for source, made in SEVERAL.items() for name in made])
@given(
    theirs=typed_parts(),
    own=typed_parts(),
    shared=st.sampled_from([0, 2, 4, 6]),
    reading=st.sampled_from([*READINGS]),
    size=sizes,
    limited=st.booleans(),
)
@example(NARROW, WIDE, 0, "items", 64, False)  # types were joined
@example(part(pa.int32(), 7), part(pa.int64(), 7, owner=2), 0, "items", 64, True)
@example(TEXT, part(pa.string(), "b", owner="1", ids=pa.string()), 0, "items", 64, False)
@example(DATED, SPELLED, 0, "items", 64, False)  # ids of two types became one user
@example(TEXT, part(pa.null(), None, owner=2), 0, "items", 64, False)
@example(TEXT, part(pa.string(), "b", None, owner=2, coded=True), 0, "items", 64, False)  # a null became an item
@settings(max_examples=30, deadline=None)
def test_a_separate_table_does_not_change_other_results(source, name, theirs, own, shared, reading, size, limited):
    """One user's file or table with a separate schema is rejected or changes nothing, before and after other tables.

    A dictionary that contains a null and occurs in only one table changes nothing either.
    """
    make = SEVERAL[source][name]
    read = partial(read_engine, options=vp.ReadOptions(memory="1GiB" if limited else None, progress=False))
    rows, kinds, coded = own
    # Tables with different types in a few columns are as likely as tables with different types in all columns.
    same = [place for place in range(3) if shared >> place & 1]
    for place in same:
        kinds = (*kinds[:place], theirs[1][place], *kinds[place + 1 :])
        rows = [(*row[:place], theirs[0][0][place], *row[place + 1 :]) for row in rows]
    own = [(rows[0][0], *row[1:]) for row in rows], kinds, coded

    def found(*some):
        if source == "rows":  # in memory
            return outcome(read, make(list(some), None), READINGS[reading])
        with tempfile.TemporaryDirectory() as folder:
            return outcome(read, make(list(some), Path(folder)), READINGS[reading])

    with divided(size, 1 << 22, at_once=True):
        alone = found(theirs)
        lone = None if alone is None else found(own)
        if lone is None:
            return
        keys = set(lone.user_key.tolist())
        alike = name in UNDECLARED or family(theirs[1][0]) == family(own[1][0])
        if alike and keys & set(alone.user_key.tolist()):
            return  # the same user
        for order in ((theirs, own), (own, theirs)):
            check_same(alone, found(*order), keys - set(alone.user_key.tolist()))
        other = theirs[0], theirs[1], not theirs[2]  # stored in dictionaries if the table was plain, and vice versa
        assert seen_by_others(found(other), set()) == seen_by_others(alone, set())
        if len(theirs[0]) == 1:
            return
        single = found(*[([row], theirs[1], theirs[2]) for row in theirs[0]])
        if single is not None:  # the types that pandas infers from single rows can differ
            check_same(alone, single, set())
