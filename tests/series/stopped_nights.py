"""Kill a night before each access to a file, and run the night again: `python -m series.stopped_nights FOLDER`.

For each step, the program prints the words of the series by the night of their release.
"""

import json
import os
import signal
import sys
from pathlib import Path

import filelock  # noqa: F401  so that a forked process imports nothing
import polars as pl

import voxpop as vp
from ledger.stopping import forked
from voxpop.mechanisms.series import series as module
from voxpop.privacy.secret import Secret

NIGHTS = 4


def rows(night: int) -> vp.Corpus:
    """Return rows with which most nights release at least one word."""
    words = [f"w{number}" for number in range(night)]
    table = pl.DataFrame({"who": range(900), "what": [words[user % len(words)] for user in range(900)]})
    return vp.read(table, user="who", items="what")


ROWS = {number: rows(number) for number in (1, 2, 3)}
"""The rows of all nights, which are read before any process is forked, because forked processes have no threads."""


def start(folder: Path) -> None:
    """Start a series that always has the same secret."""
    account = vp.Ledger(folder / "team.ledger").open("posts", vp.Budget(8, 1e-5), create=True)
    vp.Items().series(folder / "state", vp.Budget(3, 1e-6), nights=NIGHTS, ledger=account)
    night(folder, 1)


def night(folder: Path, number: int, step: int = 0) -> None:
    """Run a night, and kill this process before the access with number `step` to a file in the folder."""
    steps, series = 0, vp.Items().series(folder / "state")

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal steps
        if event.startswith(("open", "os.")) and arguments and str(folder) in str(arguments[0]):
            steps += 1
            if steps == step:
                os.kill(os.getpid(), signal.SIGKILL)

    if step:  # A hook cannot be removed later.
        sys.addaudithook(hook)
    new = series.run(ROWS[number], night=number)
    with open(folder.parent / f"{folder.name}.seen", "a") as seen:
        seen.write(json.dumps(new.to_list()) + "\n")


def outcome(folder: Path) -> dict[str, object]:
    """Return the releases of a series by night, the number of its charges, and the number of leftover files."""
    released = vp.Items().series(folder / "state").released
    nights = dict(zip(released["what"].to_pylist(), released["night"].to_pylist(), strict=True))
    entries = vp.Ledger(folder / "team.ledger").account("posts").entries
    return {"nights": nights, "charged": len(entries), "left": len(list((folder / "state").glob("*-new-*")))}


def rest(folder: Path, killed: bool) -> None:
    """Run the night again and then the next night, and print the outcome."""
    for number in (2, 3):
        night(folder, number)
    seen = folder.parent.joinpath(f"{folder.name}.seen").read_text().splitlines()
    print(json.dumps({**outcome(folder), "killed": killed, "seen": seen[-2:]}), flush=True)


def main(where: Path) -> None:
    """Print the outcome for every step, and finally the outcome of a night that is not killed."""
    module.Secret.fresh = classmethod(lambda cls: Secret(b"s" * 32, private=True))  # type: ignore[method-assign]
    step, killed = 0, True
    while killed:
        step += 1
        folder = where / f"step{step}"
        folder.mkdir()
        start(folder)  # Forked processes inherit the compiled code and the plans.
        killed = forked(night, folder, 2, step)
        forked(rest, folder, killed)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
