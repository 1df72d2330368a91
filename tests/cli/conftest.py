"""Fixtures that run the command line in the test process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from voxpop.cli import main


class Outcome(NamedTuple):
    """The exit code and the output of a call."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Return the JSON object that is the entire output."""
        assert self.out.endswith("}\n")
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """Return the one-line error message of a rejected call."""
        assert (self.code in (2, 3, 4, 5, 6), self.out) == (True, "")
        assert self.err.startswith("voxpop: ")
        assert self.err.count("\n") == 1
        return self.err


@pytest.fixture(autouse=True, scope="module")
def _few_sessions(few_sessions: None) -> None:
    """Draw few sessions, because these tests check the output of the command line and not the accuracy of models."""


@pytest.fixture
def voxpop(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Outcome]:
    """Return a function that runs the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Outcome:
        code = main([str(argument) for argument in arguments])
        return Outcome(code, *capsys.readouterr())

    return run
