"""Processor seconds and memory of a command and all processes that it starts.

A busy machine changes them only slightly.
"""

import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

EVERY = 0.1
"""Seconds between two observations. The use of a process after its last observation is not counted."""


class Used(NamedTuple):
    """The seconds by the clock, the processor seconds, and the largest number of resident bytes of a Python worker."""

    seconds: float
    core_seconds: float
    worker: int


def used_by(command: list[str], env: dict[str, str]) -> Used:
    """Run a command, and return the resources that it and its descendants used. Its errors are printed.

    Raises:
        CalledProcessError: If the command fails.
    """
    used: dict[int, float] = {}
    worker, start = 0, time.perf_counter()
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) as process:
        used[process.pid] = 0.0
        while process.poll() is None:
            worker = max(worker, _look(used))
            time.sleep(EVERY)
        taken = time.perf_counter() - start
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Used(taken, sum(used.values()), worker)


def _look(used: dict[int, float]) -> int:
    """Record the processor seconds of known processes and their children, and return the size of the largest worker."""
    ticks, page, most = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE"), 0
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda each: int(each.name)):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(folder.name) in used or int(fields[1]) in used:
                used[int(folder.name)] = (int(fields[11]) + int(fields[12])) / ticks
                if b"spark.daemon" in (folder / "cmdline").read_bytes():
                    most = max(most, int(fields[21]) * page)
        except OSError:  # the process has ended
            continue
    return most
