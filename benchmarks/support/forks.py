"""Flower's commands as forks of one process that has imported everything.

Flower starts a Python process for each answer of a node, and nearly all of its two processor seconds are imports. Here
each command is a short script that requests a fork from one process. The fork has the caller's arguments, environment,
folder and outputs, ends with the caller, and uses the network as usual.

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
"""The maximum size of arguments and environment, in bytes."""
GRACE = 10.0
"""The number of seconds within which a fork must end after SIGTERM."""
WAITS = "VOXPOP_WAITS"
"""The environment variable with the factor that shortens the sleeps of forks.

Nodes look for messages every three seconds, and so does a server. The variable is not set if seconds are measured.
"""
PLANNED = "VOXPOP_PLANNED"
"""The environment variable with a list of run configs in JSON.

Their plans are computed before the first fork. Otherwise, each server would compute its own plan.
"""
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
    """Write a script for each of Flower's commands into a folder, which must be the first on the path.

    Args:
        folder: The folder of the scripts, which is created.
        door: The socket of the process that forks.
    """
    folder.mkdir()
    for name in _commands():
        script = folder / name
        script.write_text(ASKS.format(python=sys.executable, door=str(door)))
        script.chmod(0o755)


def main() -> None:
    """Import all modules, and then listen and fork until the process is ended."""
    _sleep_less(float(os.environ.get(WAITS, "1")))
    commands = {name: entry.load() for name, entry in _commands().items()}
    __import__("voxpop_flower.node")
    __import__("voxpop_flower.serving")
    __import__("voxpop.engine.local.read")
    _warm()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(sys.argv[1])
        door.listen(256)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for forks
        while True:
            caller, _ = door.accept()
            if os.fork() == 0:
                break
            caller.close()
    # The code from here on runs in the fork.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _end(_run(commands, caller), caller)


def _warm() -> None:
    """Do the work that each fork would repeat. No thread may be left, so no table is read."""
    for late in ("httpcore", "voxpop.privacy.trie.calibrate"):  # modules that are imported on first use
        with contextlib.suppress(ImportError):
            __import__(late)
    from voxpop.kernels.group import mark_used
    from voxpop_flower.run import settings_of

    mark_used(np.zeros(1, np.int32), np.zeros(1, np.uint8))  # the first kernel of a process starts numba
    for config in json.loads(os.environ.get(PLANNED, "[]")):
        settings_of(config).plan  # noqa: B018 - the plan is cached
    # Exclude all present objects from garbage collection, so that no fork writes to them and thus copies them.
    gc.collect()
    gc.freeze()


def _end(code: int, caller: socket.socket) -> NoReturn:
    """End like an interpreter, but without freeing objects that all forks share, and then notify the caller.

    The order matters, because the caller ends when it is notified, and this process ends with it, even with unwritten
    output.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    with contextlib.suppress(OSError):
        caller.send(str(code).encode())
    os._exit(code)


def _sleep_less(part: float) -> None:
    """Make every sleep shorter. This function must be called before any import of `sleep`."""
    sleep = time.sleep
    if part < 1:
        time.sleep = lambda seconds: sleep(part * seconds)


def _commands() -> dict[str, importlib.metadata.EntryPoint]:
    scripts = importlib.metadata.distribution("flwr").entry_points.select(group="console_scripts")
    return {entry.name: entry for entry in scripts}


def _run(commands: dict[str, Callable[[], object]], caller: socket.socket) -> int:
    """Run a command in place of the caller, and return its exit code."""
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
    """End this process after its caller has ended, by SIGTERM, or by SIGKILL after `GRACE` seconds."""
    with contextlib.suppress(OSError):
        caller.recv(1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


if __name__ == "__main__":
    main()
