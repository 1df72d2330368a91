"""The job of one night, for any orchestrator: started several times, it charges the ledger once."""

import os
from pathlib import Path

import voxpop as vp


def release_words(day: str) -> str:
    """Release the words of one day to `words/DAY`, and return the folder.

    Args:
        day: such as "2026-11-25". It names the input, the output and the run.
    """
    folder = Path(os.environ["NIGHTLY"])
    words = folder / "words" / day
    run = vp.Ledger(folder / "team.ledger").account("posts").run(day, save_to=words)
    if not run.finished:
        posts = vp.read(folder / "posts" / f"{day}.parquet", user="author", text="body")
        vp.SetUnion().release(posts, vp.Budget(epsilon=0.1, delta=1e-8), ledger=run)
    return str(words)
