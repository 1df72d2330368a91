"""The data that Spark sends with keys is small for any plan, because public tables are added to the rows."""

import ast
from pathlib import Path

import pytest

import voxpop as vp
import voxpop.engine.spark
from voxpop.engine.spark.frames import MOST_CLOSURE, closure
from voxpop.errors import InputError
from voxpop.privacy.secret import Secret

WRITTEN = 1 << 20
"""Spark writes closures from this size to disk (`UDF_LARGE`, in pyspark's `_prepare_for_python_RDD`)."""
BUDGET = vp.Budget(epsilon=4, delta=1e-8)


@pytest.fixture
def sent(monkeypatch):
    """Return the pickled size of every task of a classic DataFrame."""
    from pyspark import cloudpickle
    from pyspark.sql.classic.dataframe import DataFrame

    sizes, real = [], DataFrame.mapInArrow

    def map_in_arrow(frame, work, schema, *more, **named):
        sizes.append(len(cloudpickle.dumps(work)))
        return real(frame, work, schema, *more, **named)

    monkeypatch.setattr(DataFrame, "mapInArrow", map_in_arrow)
    return sizes


def test_messages_too_large_for_keys_are_rejected(pyspark):
    """`closure` rejects settings that together are too large."""
    with pytest.raises(InputError, match="half a megabyte"):
        closure(print, coins=Secret.from_seed(1).restrict("noise/x"), rule=bytes(MOST_CLOSURE))
    assert closure(dict, a=1)() == {"a": 1}


KEYLESS = {"frames.py": 2, "reading.py": 1}
"""`closure`, bounded public arrays, and the task that reads tables before any key exists."""


def test_every_task_gets_its_settings_from_the_bounded_closure():
    """Every task gets its settings from `closure`, except tasks that have no key or are bounded."""
    found = {}
    for path in sorted(Path(voxpop.engine.spark.__file__).parent.glob("*.py")):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        count = sum(isinstance(call.func, ast.Name) and call.func.id == "partial" for call in calls)
        if count:
            found[path.name] = count
        lambdas = [call for call in calls if ast.unparse(call.func).endswith(("mapInArrow", "applyInArrow"))]
        assert not any(isinstance(argument, ast.Lambda) for call in lambdas for argument in call.args)
    assert found == KEYLESS
