"""The job of one night, for any orchestrator in Python: started several times, it charges the ledger once."""

import os
from pathlib import Path

from voxpop.cli import main

JOB = Path(__file__).with_name("words.toml")


def release_words(day: str) -> str:
    """Release the words of one day to `words/DAY`, and return the folder.

    Args:
        day: such as "2026-11-25". It names the input, the output and the run.
    """
    os.environ["DAY"] = day
    if code := main(["run", str(JOB), "--errors", "json"]):
        raise RuntimeError(f"voxpop run failed with exit code {code}; its error is in the log of this task.")
    return str(Path(os.environ["NIGHTLY"]) / "words" / day)
