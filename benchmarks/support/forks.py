"""Flower's commands as forks of one process that has imported everything.

Flower starts a Python process for each answer of a node, and nearly all of its two processor seconds are imports. Here
each command is a short script that asks one process for a fork of itself. The fork has the caller's arguments,
environment, folder and outputs, ends with the caller, and talks over the network as it always does.

python -m benchmarks.support.forks SOCKET
"""

import atexit
import contextlib
import gc
import importlib.metadata
import json
import marshal
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import numpy as np

MOST = 1 << 17
"""Bytes of arguments and environment."""
GRACE = 10.0
"""Seconds that a fork has for its end."""
WAITS = "VOXPOP_WAITS"
"""Names the part that forks sleep of what Flower asks for: nodes look for messages every three seconds, and so does a
server. Where seconds are measured it is left out."""
PLANNED = "VOXPOP_PLANNED"
"""Names run configs, a list in JSON, whose plans are made before the first fork: each server would make its own."""
ASKS = '''#!{python} -SE
"""Asks for a fork that does what this command does, and ends as it does."""
# No import that is not part of the interpreter: this is started for each answer.
import _socket, marshal, posix, sys
door = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
door.connect({door!r})
told = marshal.dumps((sys.argv, posix.getcwd(), posix.environ))
outputs = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
door.sendmsg([told], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, outputs)])
sys.exit(int(door.recv(16) or 1))
'''


def write_commands(folder: Path, door: Path) -> None:
    """Write a script for each of Flower's commands into a folder, which goes first on the path.

    Args:
        folder: where they go; it is made.
        door: the socket of the process that forks.
    """
    folder.mkdir()
    for name in _commands():
        script = folder / name
        script.write_text(ASKS.format(python=sys.executable, door=str(door)))
        script.chmod(0o755)


def main() -> None:
    """Import, listen, fork, until it is ended."""
    _sleep_less(float(os.environ.get(WAITS, "1")))
    commands = {name: entry.load() for name, entry in _commands().items()}
    __import__("voxpop.mechanisms.heavy_hitters.flower")
    __import__("voxpop.engine.local.read")
    _warm()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(sys.argv[1])
        door.listen(256)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for forks
        while True:
            caller, _ = door.accept()
            if os.fork() == 0:
                break
            caller.close()
    # From here on this is the fork.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _end(_run(commands, caller), caller)


def _warm() -> None:
    """Do once what each fork would do by itself: no thread may be left, and so no table is read."""
    for late in ("httpcore", "voxpop.privacy.trie.calibrate"):  # what is imported by those who first need it
        with contextlib.suppress(ImportError):
            __import__(late)
    from voxpop.kernels.group import mark_used
    from voxpop.mechanisms.heavy_hitters.flower import settings_of

    mark_used(np.zeros(1, np.int32), np.zeros(1, np.uint8))  # the first kernel of a process starts numba
    for config in json.loads(os.environ.get(PLANNED, "[]")):
        settings_of(config).plan  # noqa: B018 - kept by those who ask for it
    # What is there now is never collected, so no fork writes to it, and copies it, by looking.
    gc.collect()
    gc.freeze()


def _end(code: int, caller: socket.socket) -> NoReturn:
    """End as an interpreter ends, but for taking apart what all forks have in common; then tell the caller.

    Not before: it ends when it is told, and this process with it, whatever has not been written by then.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    with contextlib.suppress(OSError):
        caller.send(str(code).encode())
    os._exit(code)


def _sleep_less(part: float) -> None:
    """Make every sleep shorter, before anybody imports it."""
    sleep = time.sleep
    if part < 1:
        time.sleep = lambda seconds: sleep(part * seconds)


def _commands() -> dict[str, importlib.metadata.EntryPoint]:
    scripts = importlib.metadata.distribution("flwr").entry_points.select(group="console_scripts")
    return {entry.name: entry for entry in scripts}


def _run(commands: dict[str, Callable[[], object]], caller: socket.socket) -> int:
    """Do what a command does, in the caller's place, and return how it ends."""
    text, outputs, _, _ = socket.recv_fds(caller, MOST, 3)
    command, folder, environment = marshal.loads(text)
    for number, output in enumerate(outputs):
        os.dup2(output, number)
        os.close(output)
    os.chdir(folder)
    os.environb.clear()
    os.environb.update(environment)
    sys.argv = command
    threading.Thread(target=_end_with, args=(caller,), daemon=True).start()
    try:
        commands[Path(sys.argv[0]).name]()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _end_with(caller: socket.socket) -> None:
    """End this process when its caller has ended: as it likes, and if it does not, without more ado."""
    with contextlib.suppress(OSError):
        caller.recv(1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


if __name__ == "__main__":
    main()
