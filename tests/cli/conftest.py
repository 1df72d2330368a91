"""The command line, called in this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from voxpop.cli import main


class Outcome(NamedTuple):
    """What a call left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object that is all of the output."""
        assert self.out.endswith("}\n")
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line of a refused call."""
        assert (self.code, self.out) == (2, "")
        assert self.err.startswith("voxpop: ")
        assert self.err.count("\n") == 1
        return self.err


@pytest.fixture(autouse=True, scope="module")
def _few_sessions(few_sessions: None) -> None:
    """The command line prints answers of models, whatever they are."""


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
