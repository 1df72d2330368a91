"""Kill runs at every step and repeat them.

The command `python -m ledger.stopping FOLDER VARIANT...` prints the charges and files after each step.
"""

import json
import os
import signal
import sqlite3
import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import filelock  # noqa: F401  imported here so that a forked process imports nothing
import pandas  # noqa: F401  pyarrow imports pandas for the first array of strings
import pyarrow as pa
import pyarrow.parquet

import voxpop as vp
from support.plans import planned
from voxpop.errors import ReleaseError
from voxpop.ledger import ledger, runs
from voxpop.release.result import StoredPlan

ONCE = vp.Guarantee(1, 1e-8)
BROKEN = ("finish first", "publish first", "repeat finished", "resume unfinished")


def release(_: object = None) -> vp.Release:
    """Return a release with a new identifier."""
    return vp.Release.from_items(pa.array(["milk", "tea"]), StoredPlan({"sigma": 1.2}), ONCE)


def finish_first(run: runs.LedgerRun, entry: ledger.Entry, result: vp.Release) -> None:
    """Finish the entry before the result is written (a planted fault)."""
    run.account.finish(entry, result)
    runs.publish(runs.keep(result.save, run.folder, "broken"), run.folder)


def publish_first(run: runs.LedgerRun, entry: ledger.Entry, result: vp.Release) -> None:
    """Publish the result before the entry is finished (a planted fault)."""
    runs.publish(runs.keep(result.save, run.folder, f"broken{entry.attempt}"), run.folder, overwrite=True)
    run.account.finish(entry, result)


def repeat_finished(account: ledger.LedgerAccount, earlier: ledger.Entry, *_: object) -> ledger.Entry:
    """Repeat a finished run without a charge (a planted fault)."""
    return replace(earlier, attempt=earlier.attempt + 1, state="charged")


def job(folder: Path, *, saving: bool) -> None:
    """Run the job of the guide, and record the identifier that its caller receives."""
    save_to = folder / "words" if saving else None
    run = vp.Ledger(folder / "team.ledger").account("posts").run("monday", save_to=save_to, overwrite=True)
    if not run.finished:
        words = planned(ONCE, release).release(None, ledger=run)
        with open(folder.parent / f"{folder.name}.seen", "a") as seen:
            seen.write(f"{words.id}\n")


def forked(work: object, *arguments: object, **options: object) -> bool:
    """Run a function in a separate process, and return whether the process was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work(*arguments, **options)
            code = 0
        finally:
            os._exit(code)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def stopped(folder: Path, step: int, *, saving: bool) -> None:
    """Run the job, and kill this process before step `step`.

    Steps are file accesses in the folder and SQL statements.
    """
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1
        if steps == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event.startswith(("open", "os.", "shutil.")) and arguments and str(folder) in str(arguments[0]):
            count()

    class Counted(sqlite3.Connection):
        """A connection that counts its statements as steps."""

        def execute(self, *given: object) -> sqlite3.Cursor:
            count()
            return super().execute(*given)

    sqlite3.connect = partial(sqlite3.connect, factory=Counted)
    sys.addaudithook(hook)
    job(folder, saving=saving)


def resumed(folder: Path) -> set[str]:
    """Try to save every kept result as `voxpop resume` does, and return the identifiers of the saved results."""
    found = set()
    for kept in folder.glob(".words.voxpop-kept-*/words"):
        with suppress(ReleaseError):
            runs.publish(kept, folder / "words", overwrite=True)
            found.add(vp.load(folder / "words", vp.Release).id)
    return found


def outcome(folder: Path) -> dict[str, object]:
    """Return the charges, the states, and the identifiers of all releases that anyone could have seen."""
    account = vp.Ledger(folder / "team.ledger").account("posts")
    seen = folder.parent / f"{folder.name}.seen"
    published = set(seen.read_text().split()) if seen.exists() else set()
    saved = folder / "words" / "release.json"
    if saved.exists():
        published.add(json.loads(saved.read_text())["id"])
    return {
        "charges": len(account.entries),
        "states": [entry.state for entry in account.entries],
        "published": sorted(published),
        "saved": saved.exists(),
        "left": sorted(each for each in os.listdir(folder) if "voxpop-" in each),
    }


def main(root: Path, variant: str) -> None:
    """For each step, run the job, kill it at this step, and repeat it, until a job completes before the step.

    For a broken variant, stop at the first violation.
    """
    saving = variant not in ("not saved", "repeat finished")
    vp.Release._page = lambda *_: b"report"  # Rendering the report would take most of the time.
    if variant == "repeat finished":
        ledger.LedgerAccount._repeated = repeat_finished
        runs.LedgerRun.finished = property(lambda _: False)
    elif variant == "resume unfinished":
        keep = runs.keep
        runs.keep = lambda save, folder, key, unfinished: keep(save, folder, key)
    elif variant.endswith("first"):
        runs.LedgerRun.finish = {"finish first": finish_first, "publish first": publish_first}[variant]
    vp.Ledger(root / "warm.json").open("posts", vp.Budget(3, 1e-6), create=True).charge(ONCE, "test")
    killed, step = True, 0
    while killed:
        step += 2 if variant in BROKEN else 1
        folder = root / f"step{step}"
        folder.mkdir()
        vp.Ledger(folder / "team.ledger").open("posts", vp.Budget(3, 1e-6), create=True)
        killed = forked(stopped, folder, step, saving=saving)
        first = {*outcome(folder)["published"], *resumed(folder)}
        forked(job, folder, saving=saving)
        then = outcome(folder)
        then["published"] = sorted({*first, *then["published"]})
        print(json.dumps({**then, "variant": variant}), flush=True)
        lost = saving and not then["saved"]
        if variant in BROKEN and (then["charges"] != 1 or len(then["published"]) > 1 or lost):
            return


if __name__ == "__main__":
    for number, name in enumerate(sys.argv[2:]):
        root = Path(sys.argv[1]) / str(number)
        root.mkdir()
        forked(main, root, name)  # Each variant needs a separate process, because it replaces functions of voxpop.
