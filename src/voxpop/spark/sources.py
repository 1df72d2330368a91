"""What a table and a session must be before anything runs."""

import os
import sys
from typing import TYPE_CHECKING, Any

from voxpop.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PYTHON = "spark.pyspark.python"


def check_repeatable(frame: "DataFrame") -> None:
    """Refuse a table whose plan draws at random or numbers rows: what is lost with an executor is read again.

    Spark Connect does not show plans, so there it is not noticed.

    Raises:
        SourceError: saying what to do first.
    """
    plan: Any = getattr(frame, "_jdf", None)
    if plan is not None and not plan.queryExecution().analyzed().deterministic():
        raise SourceError(
            "the table is not the same whenever Spark reads it: its query draws at random or numbers rows (rand, uuid, "
            "monotonically_increasing_id, a function without a fixed answer). Write it to a file first, and read that."
        )


def use_own_python(session: "SparkSession") -> None:
    """Have workers on this machine run the Python that runs here, where nobody chose another.

    Spark takes the first `python3` of the PATH, which in a virtual environment that was not activated has no voxpop.
    """
    context: Any = getattr(session, "_sc", None)
    if context is None or not str(context.master).startswith("local"):
        return
    if "PYSPARK_PYTHON" not in os.environ and context.getConf().get(PYTHON) is None:
        context.pythonExec = sys.executable
