"""Tests that closures are small. Closures contain keys, and Spark writes large closures to disk."""

import ast
from pathlib import Path

import pytest

import voxpop as vp
import voxpop.engine.spark
from voxpop.engine.spark.frames import MOST_CLOSURE, closure
from voxpop.errors import InputError
from voxpop.privacy.secret import Secret

WRITTEN = 1 << 20
"""Spark writes closures of at least this size to disk (`UDF_LARGE`, in pyspark's `_prepare_for_python_RDD`)."""
BUDGET = vp.Budget(epsilon=4, delta=1e-8)


def test_closures_that_are_too_large_are_rejected(pyspark):
    """`closure` rejects settings with a total size that is too large."""
    with pytest.raises(InputError, match="half a megabyte"):
        closure(print, coins=Secret.from_seed(1).restrict("noise/x"), rule=bytes(MOST_CLOSURE))
    assert closure(dict, a=1)() == {"a": 1}


KEYLESS = {"frames.py": 2, "reading.py": 1}
"""The permitted calls of `partial`, which are in `closure`, for bounded public arrays, and before any key exists."""


def test_every_task_gets_its_settings_from_the_bounded_closure():
    """The exceptions are tasks without a key and tasks with bounded settings."""
    found = {}
    for path in sorted(Path(voxpop.engine.spark.__file__).parent.glob("*.py")):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        count = sum(isinstance(call.func, ast.Name) and call.func.id == "partial" for call in calls)
        if count:
            found[path.name] = count
        lambdas = [call for call in calls if ast.unparse(call.func).endswith(("mapInArrow", "applyInArrow"))]
        assert not any(isinstance(argument, ast.Lambda) for call in lambdas for argument in call.args)
    assert found == KEYLESS
