"""The work of the processes that `test_ledger.py` kills.

The command `python -m ledger.killing LEDGER` is not useful on its own.
"""

import json
import os
import signal
import sqlite3
import sys
from functools import partial

import voxpop as vp
from support.plans import planned
from voxpop.ledger import storage

ONCE = vp.Guarantee(1, 1e-8)


def kill() -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


def release(path: str) -> None:
    """Kill this process in the middle of a release."""
    planned(ONCE, lambda _: kill()).release(None, ledger=vp.Ledger(path).account("posts"))


def charge(path: str, wanted: str, when: str) -> None:
    """Kill this process before or after it executes an SQL statement of a charge."""

    class Killed(sqlite3.Connection):
        """A connection that kills this process."""

        def execute(self, statement: str, *values: object) -> sqlite3.Cursor:
            if statement.startswith(wanted) and when == "before":
                kill()
            found = super().execute(statement, *values)
            if statement.startswith(wanted):
                kill()
            return found

    storage.sqlite3.connect = partial(sqlite3.connect, factory=Killed)
    vp.Ledger(path).account("posts").charge(ONCE, "killed")


def serve(warm: str) -> None:
    """Fork a process for each line of standard input, which contains the work as JSON, and print its exit code.

    The first charge imports all modules, so a forked process imports nothing.
    """
    vp.Ledger(warm).open("warm", vp.Budget(1, 1e-8), create=True).charge(ONCE, "warm")
    works = {each.__name__: each for each in (release, charge)}
    for line in sys.stdin:
        work, *arguments = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                works[work](*arguments)
            finally:
                os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
