"""Tests that the driver raises Voxpop errors of executors unchanged and withholds the messages of other errors."""

import pytest

from voxpop.engine.spark.session import translated
from voxpop.engine.spark.worker import task
from voxpop.errors import ColumnError, InternalError, SourceError

PRIVATE = "the patient in room 7"


def test_messages_of_other_errors_are_withheld():
    """Messages of other libraries can quote data, so only the type and location of the error are reported."""

    @task
    def broken(batches):
        yield from batches
        raise ValueError(PRIVATE)

    with pytest.raises(InternalError, match=r"ValueError at test_failures\.py:\d+") as caught:
        list(broken([]))
    assert PRIVATE not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_an_error_of_voxpop_is_raised_unchanged():
    """Messages of Voxpop never quote data."""

    @task
    def refusing(batches):
        yield from batches
        raise SourceError("fill it in.")

    with pytest.raises(SourceError, match="fill it in"):
        list(refusing([]))


def test_the_driver_finds_an_error_of_voxpop_in_a_traceback():
    """The driver finds the error by the name of its class. Unknown errors are not translated."""
    text = 'Traceback\n  File "x.py", line 3\nvoxpop.errors.ColumnError: a list is needed.\n\tat org.apache.spark'
    found = translated(text)
    assert type(found) is ColumnError
    assert str(found) == "a list is needed."
    assert translated("java.lang.IllegalStateException: never seen") is None
    assert translated("voxpop.errors.nothing: x") is None or isinstance(
        translated("voxpop.errors.nothing: x"), InternalError
    )
