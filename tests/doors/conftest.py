"""Fixtures for one small table and for a check that every source of its rows gives the same corpus."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import voxpop as vp
from support.look import read_engine
from voxpop.engine.local.corpus import LocalCorpus

TABLE = pl.DataFrame(
    {
        "who": [3, 1, 3, 2, 1],
        "body": ["Good morning!", "tea", None, 'it\'s tea; "tea"', "good night"],
        "tags": [["a"], ["b", "a"], None, [], ["c"]],
        "shop": [7, 8, None, 7, 7],
    }
)


@pytest.fixture
def table() -> pl.DataFrame:
    """Return a table of users, texts with a null, lists, and integers with a null."""
    return TABLE


def parts(corpus: LocalCorpus) -> tuple[Any, ...]:
    """Return the arrays, the vocabulary and the keys of a corpus."""
    return (
        corpus.tokens.tolist(),
        corpus.user_start.tolist(),
        corpus.user_key.tolist(),
        corpus.vocabulary.to_pylist(),
        corpus.keys,
    )


@pytest.fixture
def reads_alike() -> Callable[..., None]:
    """Return a function that checks that a source is read like the table.

    The function creates a new source for each reading.
    """

    def check(make: Callable[[], Any], *, declared: bool = True, memory: str | None = None) -> None:
        for columns in ({"text": "body"}, {"items": "shop"}, {"tokens": "tags"}):
            wanted = read_engine(TABLE, user="who", **columns)
            types = {} if declared else {"who": "int64"} | ({"shop": "int64"} if "items" in columns else {})
            read = read_engine(make(), user="who", **columns, types=types, options=vp.ReadOptions(memory=memory))
            assert parts(read) == parts(wanted), columns

    return check
