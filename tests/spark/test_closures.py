"""What is sent with keys stays small, whatever the plan; public tables come beside the rows."""

import ast
from pathlib import Path

import numpy as np
import pytest

import voxpop as vp
import voxpop.spark
from voxpop.corpus.histogram import Histogram
from voxpop.errors import InputError
from voxpop.privacy.decide import TableRule
from voxpop.privacy.decisions import ReleaseDecisions
from voxpop.privacy.release_table import MOST_WEIGHTS, ReleaseTable
from voxpop.privacy.secret import Secret
from voxpop.spark import frames
from voxpop.spark.closures import MOST_CLOSURE, closure
from voxpop.spark.histogram import SparkHistogram

WRITTEN = 1 << 20
"""Closures from here on are written to disk by Spark (`UDF_LARGE`, in pyspark's `_prepare_for_python_RDD`)."""
BUDGET = vp.Budget(epsilon=4, delta=1e-8)


@pytest.fixture
def sent(monkeypatch):
    """Return the pickled size of every task that a classic DataFrame is given."""
    from pyspark import cloudpickle
    from pyspark.sql.classic.dataframe import DataFrame

    sizes, real = [], DataFrame.mapInArrow

    def map_in_arrow(frame, work, schema, *more, **named):
        sizes.append(len(cloudpickle.dumps(work)))
        return real(frame, work, schema, *more, **named)

    monkeypatch.setattr(DataFrame, "mapInArrow", map_in_arrow)
    return sizes


def long_table():
    """Return the longest table that a plan may have."""
    rising = np.linspace(0.001, 0.5, MOST_WEIGHTS)
    return ReleaseTable(3, rising, MOST_WEIGHTS)


def test_the_longest_table_travels_beside_the_rows(spark, sent):
    """In a closure with its key it took two megabytes, which Spark writes to disk. Coins fall as on this machine."""
    frame = spark.range(0, 5000, 1, 4).selectExpr("id AS name", "0L AS high", "id * 50 + 3 AS low")
    coins = ReleaseDecisions(TableRule(long_table()), Secret.from_seed(3), "noise/x")
    ids = np.arange(5000)
    expected = Histogram(ids, ids * 50 + 3).chosen(coins)
    assert SparkHistogram(frame, words=False).chosen(coins).tolist() == expected.tolist()
    assert 100 < expected.size < 4900
    assert max(sent) < MOST_CLOSURE + frames.MOST_IN_CLOSURE < WRITTEN


@pytest.mark.parametrize("most", [frames.MOST_IN_CLOSURE, 10], ids=["closure", "broadcast"])
def test_set_only_releases_are_the_same(read_both, talk, sent, monkeypatch, most):
    """However the table travels, in several rounds."""
    local, spread = read_both(talk)
    monkeypatch.setattr(frames, "MOST_IN_CLOSURE", most)
    union = vp.SetUnion(limit=4, weighting="weighted", accounting="set-only", rounds=2)
    one, other = (union.release(corpus, BUDGET, seed=4) for corpus in (local, spread))
    assert one.grams.equals(other.grams)
    assert len(one) > 5


def test_what_is_too_large_to_be_sent_with_keys_is_refused(pyspark):
    """By every task, whatever is large."""
    with pytest.raises(InputError, match="half a megabyte"):
        closure(print, coins=Secret.from_seed(1).restrict("noise/x"), rule=bytes(MOST_CLOSURE))
    assert closure(dict, a=1)() == {"a": 1}


KEYLESS = {"closures.py": 1, "frames.py": 1, "read.py": 2}
"""`closure` itself; public arrays, bounded where they are added; how to read a table, there or here, before any key."""


def test_nothing_is_sent_another_way():
    """Every task gets its settings from `closure`, but for three places that know no key or bound it."""
    found = {}
    for path in sorted(Path(voxpop.spark.__file__).parent.glob("*.py")):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        count = sum(isinstance(call.func, ast.Name) and call.func.id == "partial" for call in calls)
        if count:
            found[path.name] = count
        lambdas = [call for call in calls if ast.unparse(call.func).endswith(("mapInArrow", "applyInArrow"))]
        assert not any(isinstance(argument, ast.Lambda) for call in lambdas for argument in call.args)
    assert found == KEYLESS
