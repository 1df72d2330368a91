"""What is sent to executors together with keys: small enough that Spark keeps it in memory."""

from collections.abc import Callable
from functools import partial
from typing import Any

from voxpop.errors import InputError

MOST_CLOSURE = 1 << 19
"""Spark writes closures above 2^20 bytes to disk, and keys must not be written. With `frames.MOST_IN_CLOSURE` for
public arrays this stays below."""


def closure(work: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    """Return a task with its settings, as it is sent: the one way for settings that may hold keys.

    Args:
        work: a task.
        settings: its keyword arguments.

    Raises:
        InputError: where they are too large to be sent without being written to disk.
    """
    from pyspark import cloudpickle

    dumps: Any = cloudpickle.dumps
    if len(dumps(settings)) > MOST_CLOSURE:
        raise InputError(
            "the weighting takes more than half a megabyte to send to executors, and Spark would write it to disk "
            "together with the keys of the noise. Make it smaller: let it compute its tables when they are needed."
        )
    return partial(work, **settings)
