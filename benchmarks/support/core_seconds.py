"""Processor seconds of a command with all processes that it starts: what a busy machine does not change much."""

import os
import subprocess
import time
from pathlib import Path

EVERY = 0.1
"""Seconds between two looks; what a process uses after the last one before its end is not seen."""


def seconds_of(command: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Run a command; return its seconds by the clock, and the processor seconds of it and its descendants.

    Raises:
        CalledProcessError: where it fails.
    """
    used: dict[int, float] = {}
    start = time.perf_counter()
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        used[process.pid] = 0.0
        while process.poll() is None:
            _look(used)
            time.sleep(EVERY)
        taken = time.perf_counter() - start
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return taken, sum(used.values())


def _look(used: dict[int, float]) -> None:
    """Note the processor seconds of the processes known, and of their children, from /proc."""
    ticks = os.sysconf("SC_CLK_TCK")
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda each: int(each.name)):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(folder.name) in used or int(fields[1]) in used:
            used[int(folder.name)] = (int(fields[11]) + int(fields[12])) / ticks
