"""Failures of executors as voxpop's own errors."""

import re
from collections.abc import Callable
from typing import Any

from voxpop import errors
from voxpop.errors import InternalError, VoxpopError

RAISED = re.compile(r"^voxpop\.errors\.(\w+): (.*)$", re.MULTILINE)


def answer(work: Callable[[], Any]) -> Any:
    """Run an action; where a task raised one of our errors, raise that.

    Raises:
        VoxpopError: what a task raised. Errors of Spark itself pass through.
    """
    from pyspark.errors import PySparkException

    try:
        return work()
    except PySparkException as error:
        found = translated(str(error))
        if found is None:
            raise
    raise found


def translated(text: str) -> VoxpopError | None:
    """Return the error of ours that a failure of Spark quotes, or None."""
    match = RAISED.search(text)
    if match is None:
        return None
    kind = getattr(errors, match.group(1), InternalError)
    return kind(match.group(2)) if issubclass(kind, VoxpopError) else None
