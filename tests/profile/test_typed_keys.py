"""Tests of typed keys and of cover by row. Each key has a distinct token, even with bars, backslashes and nulls."""

import datetime
from functools import cache
from itertools import product

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from naive.profile import cover_of, keys_of_row
from support.look import corpus_documents, user_items
from voxpop.engine.local import corpus as storing
from voxpop.engine.local.read import read_here
from voxpop.errors import ColumnError, InputError
from voxpop.reading import typed_keys
from voxpop.reading.keys import KeyColumn
from voxpop.reading.typed_keys import TypedKeys
from voxpop.reading.wanted import Request

UNIT = 1 << 24
COLUMNS, TEXTS, JOINT = ("a", "b", "n", "t"), ("t",), (("a", "b"), ("b", "n", "a"))
KEYS = TypedKeys(
    (KeyColumn("a", "string"), KeyColumn("b", "string"), KeyColumn("n", "int64"), KeyColumn("t", "string")),
    TEXTS,
    JOINT,
)
TEXT = st.none() | st.text("01|\\ ä", max_size=4)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"u": st.integers(0, 3), "a": TEXT, "b": TEXT, "n": st.none() | st.integers(-2, 11), "t": TEXT}
    )
)


def corpus_of(rows):
    """Return the corpus of rows."""
    types = {"u": pl.Int64, "a": pl.String, "b": pl.String, "n": pl.Int64, "t": pl.String}
    return read_here(pl.DataFrame(rows, schema=types), Request(["u"], "tokens", list(COLUMNS), typed=KEYS))


def decoded(tokens):
    """Return the key of each token as (names, values)."""
    numbers, items = KEYS.split(tokens)
    return list(map(key_of, numbers.tolist(), items.to_pylist()))


@cache
def key_of(number, item):
    """Return the key of an item of a set of columns. Keys are cached, because most examples have the same items."""
    value = KEYS.keys_of(number).values(pa.array([item], pa.large_string()))[0]
    return KEYS.sets[number], value if isinstance(value, tuple) else (value,)


@given(rows=ROWS)
def test_rows_become_the_keys_of_the_reference(rows):
    """Each row has the same keys as in the reference implementation, in any order. Each key has exactly one token."""
    corpus = corpus_of(rows)
    keys = dict(zip(corpus.vocabulary.to_pylist(), decoded(corpus.vocabulary), strict=True))
    assert len(set(keys.values())) == len(keys)
    found = sorted(
        sorted(map(repr, (keys[token] for token in row))) for user in corpus_documents(corpus) for row in user
    )
    expected = sorted(sorted(map(repr, keys_of_row(row, COLUMNS, TEXTS, JOINT))) for row in rows)
    assert found == expected


@given(rows=ROWS, data=st.data())
def test_candidates_are_the_joint_keys_of_listed_values(rows, data):
    """All joint keys of listed values are candidates, with or without users, and each occurs once.

    `only` keeps exactly the tokens of candidates.

    The candidates are generated in parts of any size. If a combination exceeds the limit together with the previous
    combinations, the combination has no candidates, and `only` keeps none of its tokens.
    """
    corpus = corpus_of(rows)
    every = dict(zip(corpus.vocabulary.to_pylist(), decoded(corpus.vocabulary), strict=True))
    single = {token for token, (names, _) in every.items() if len(names) == 1}
    assert set(corpus.only(KEYS, None).vocabulary.to_pylist()) == single
    listed = pa.array(sorted(token for token in single if data.draw(st.booleans())), pa.large_string())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typed_keys, "_KEYS_AT_ONCE", data.draw(st.integers(1, 7)))
        patch.setattr(typed_keys, "MOST_CANDIDATES", most := data.draw(st.sampled_from([1000, 20, 5, 0])))
        number, kept = sum(KEYS.sizes(listed).values()), corpus.only(KEYS, listed)
        found = [token for part in KEYS.candidates(listed) for token in part.to_pylist()]
    values = {
        name: [value for names, (value,) in map(every.__getitem__, listed.to_pylist()) if names == (name,)]
        for name in COLUMNS
    }
    expected = []
    for names in JOINT:
        mine = [(names, own) for own in product(*(values[name] for name in names))]
        expected += mine if len(expected) + len(mine) <= most else []
    assert number == len(found) == len(set(found)) == len(expected)
    assert set(decoded(pa.array(found, pa.large_string()))) == set(expected)
    assert set(kept.vocabulary.to_pylist()) == set(found) & every.keys()
    held = [{every[t] for row in user for t in row} for user in corpus_documents(corpus)]
    assert [{every[t] for t in user} for user in user_items(kept)] == [user & set(expected) for user in held]


def shared(rows, released):
    """Return the sums of shares by column, computed by the real code."""
    corpus = corpus_of(rows)
    keys = decoded(corpus.vocabulary)
    listed = [token for token, key in zip(corpus.vocabulary.to_pylist(), keys, strict=True) if key in released]
    histogram = corpus.row_shares(pa.array(listed, pa.large_string()), len(COLUMNS), UNIT)
    return histogram._weights.reshape(-1, 2)


@given(rows=ROWS, parts=st.integers(1, 5), data=st.data())
def test_cover_equals_the_reference(rows, parts, data):
    """The sums do not depend on the division of users into parts. Each share is rounded down."""
    every = [key for row in rows for key in keys_of_row(row, COLUMNS, TEXTS, ())]
    released = {key for key in every if data.draw(st.booleans())}
    users = {}
    for row in rows:
        users.setdefault(row["u"], []).append(row)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storing, "CELLS_AT_ONCE", 9 * parts)
        found = shared(rows, released)
    expected = cover_of(users, COLUMNS, released, TEXTS)
    for name, sums in zip(COLUMNS, found / UNIT, strict=True):
        assert np.allclose(sums, [float(each) for each in expected[name]], rtol=0, atol=5 / UNIT)
        assert (sums <= [float(each) + 1e-12 for each in expected[name]]).all()


def farthest(pairs=300):
    """Return the largest l2 change of all sums by one user, divided by the root of the number of columns."""
    rng, worst = np.random.default_rng(5), 0.0
    for _ in range(pairs):
        values = ["x", "y", None][: rng.integers(1, 4)]
        rows = [
            {
                "u": int(rng.integers(3)),
                "n": int(rng.integers(2)),
                **{name: values[rng.integers(len(values))] for name in "abt"},
            }
            for _ in range(rng.integers(1, 12))
        ]
        released = {((name,), (value,)) for name in COLUMNS for value in ("x", 0, 1) if rng.random() < 0.7}
        both = (shared(some, released) for some in (rows, [row for row in rows if row["u"] != rows[0]["u"]]))
        one, other = both
        worst = max(worst, float(np.linalg.norm((one - other).ravel())) / UNIT / len(COLUMNS) ** 0.5)
    return worst


def test_one_user_changes_cover_by_at_most_the_charge():
    """The worst pair of neighbours nearly attains the charge."""
    assert 0.99 < farthest() <= 1.0


def test_the_search_detects_users_who_count_for_each_row(monkeypatch):
    """In the broken variant, shares are not divided by the number of rows."""
    monkeypatch.setattr(storing.np, "maximum", lambda whole, one: np.ones_like(whole))
    assert farthest(60) > 1.5


def test_values_without_escaping_are_detected(monkeypatch):
    """In the broken variant, bars in values are not escaped, so two pairs have the same token."""
    rows = [{"u": 0, "a": "x|y", "b": "z", "n": 1, "t": ""}, {"u": 0, "a": "x", "b": "y|z", "n": 1, "t": ""}]
    assert len({token for token in corpus_of(rows).vocabulary.to_pylist() if token.startswith("4|")}) == 2
    monkeypatch.setattr(
        typed_keys,
        "joined_texts",
        lambda texts: pa.array(
            ["|".join(row) for row in zip(*(each.to_pylist() for each in texts), strict=True)], pa.large_string()
        ),
    )
    assert len({token for token in corpus_of(rows).vocabulary.to_pylist() if token.startswith("4|")}) == 1


@pytest.mark.parametrize("joint", [[("a",)], [("a", "a")], [("a", "t")], [("a", "x")], [("a", "b"), ("a", "b")]])
def test_invalid_combinations_are_rejected(joint):
    """The cases are one column, a repeated column, a text, an unknown column, and a repeated combination."""
    with pytest.raises(InputError, match="each entry of `joint` must list"):
        TypedKeys(KEYS.columns, TEXTS, tuple(joint))


def test_a_column_with_an_unplanned_type_is_rejected():
    """Otherwise, values of different types with the same spelling would be the same key."""
    with pytest.raises(ColumnError, match="contains int32"):
        KEYS.tokens([pa.array(["x"]), pa.array(["x"]), pa.array([1], pa.int32()), pa.array(["x"])])
    with pytest.raises(ColumnError, match="contains date32"):
        KEYS.tokens([pa.array(["x"]), pa.array(["x"]), pa.array([datetime.date(2026, 1, 1)]), pa.array(["x"])])


def test_texts_are_split_by_the_named_tokenizer():
    """An empty text has no tokens."""
    keys = TypedKeys((KeyColumn("t", "string"),), ("t",))
    assert keys.tokens([pa.array(["Tea |, tea", None, ""])], "whitespace").to_pylist() == [
        ["0|Tea", "0|\\|,", "0|tea"],
        [],
        [],
    ]
    assert vp.ProfileMechanism({"t": "string"}, text=["t"]).keys == keys
