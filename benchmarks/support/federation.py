"""A federation on this machine for tests and benchmarks, with a SuperLink and SuperNodes as processes on loopback."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.support.forks import write_commands

ROOT = Path(__file__).resolve().parents[2]
APP = ROOT / "examples" / "flower"
MEMORY = ":flwr-in-memory:"
SOURCES = os.pathsep.join(map(str, (ROOT, ROOT / "flower" / "src")))
BIN = Path(sys.executable).parent
COPIED = ("pyproject.toml", "hitters_app/__init__.py", "hitters_app/server.py", "hitters_app/client.py")


def free_port() -> int:
    """Return a port that no process uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def app_with(folder: Path, extra: str = "", **files: str) -> Path:
    """Return a copy of the example with another server or client.

    Args:
        folder: The folder of the copy.
        extra: The lines for its run config.
        **files: The texts of `server` and `client`.
    """
    app = folder / "app"
    (app / "hitters_app").mkdir(parents=True)
    for name in COPIED:
        (app / name).write_text((APP / name).read_text() + (extra if name == "pyproject.toml" else ""))
    for name, text in files.items():
        (app / "hitters_app" / f"{name}.py").write_text(text.lstrip())
    return app


class Federation:
    """Processes, each with a log, that are stopped at the end.

    Attributes:
        folder: The folder of logs and of Flower's own files.
        link: The SuperLink, a process that is started in the usual way. All other processes are forks (`forks.py`).
    """

    def __init__(
        self, folder: Path, of_link: dict[str, str] | None = None, database: str = MEMORY, **environment: str
    ) -> None:
        """Start a SuperLink.

        Args:
            folder: The folder of logs, which must exist.
            of_link: The variables of the SuperLink and of the servers that it starts.
            database: The file of the SuperLink's database. The default is a database in memory.
            **environment: Further variables of all processes.
        """
        self.folder, self.port = folder, free_port()
        self.running: list[subprocess.Popen[bytes]] = []
        home, door = folder / "home", folder / "forks"
        home.mkdir()
        connection = f'address = "127.0.0.1:{self.port}"\ninsecure = true\n'
        (home / "config.toml").write_text(f'[superlink]\ndefault = "loopback"\n\n[superlink.loopback]\n{connection}')
        write_commands(folder / "bin", door)
        path = os.pathsep.join([str(folder / "bin"), str(BIN), os.environ["PATH"]])
        more = {"FLWR_HOME": str(home), "FLWR_TELEMETRY_ENABLED": "0", "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.2"}
        self.environment = {**os.environ, **more, "PATH": path, "PYTHONPATH": SOURCES, **environment}
        self.start("forks", sys.executable, "-m", "benchmarks.support.forks", door)
        self.wait_for(door.exists)  # all processes started later request forks from it
        superlink = BIN / "flower-superlink"
        how = ("--insecure", "--port", self.port, "--disable-runtime-dependency-installation")
        how = (*how, "--database", database)
        self.link = self.start("link", superlink, *how, **(of_link or {}))
        self.wait_for(self.is_served)

    def is_served(self) -> bool:
        """Whether the SuperLink answers. Before that, it listens briefly to check that its port is free."""
        with socket.create_connection(("127.0.0.1", self.port), 1) as asking:
            asking.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return bool(asking.recv(1))

    def start(self, name: str, *command: object, **environment: str) -> "subprocess.Popen[bytes]":
        """Start a process in a separate process group, with its output in a file."""
        with open(self.folder / f"{name}.log", "w") as output:
            process = subprocess.Popen(
                list(map(str, command)),
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**self.environment, **environment},
                start_new_session=True,
            )
        self.running.append(process)
        return process

    def node(self, name: str, config: str) -> "subprocess.Popen[bytes]":
        """Start a SuperNode.

        Args:
            name: The name of its log.
            config: The node config.
        """
        link = ("--insecure", "--superlink", f"127.0.0.1:{self.port}", "--port", free_port())
        return self.start(name, self.folder / "bin" / "flower-supernode", *link, "--node-config", config)

    def run(self, name: str, app: Path, config: str) -> Path:
        """Start a run, and return its log, which contains the output of the server.

        Args:
            name: The name of its log.
            app: The Flower app.
            config: The run config.
        """
        flower = self.folder / "bin" / "flwr"
        self.start(name, flower, "run", app, "loopback", "--stream", "--run-config", config)
        return self.folder / f"{name}.log"

    def wait_for(self, works: Callable[[], object], seconds: float = 1200.0) -> None:
        """Wait until a function returns anything but False.

        Raises:
            TimeoutError: If it takes too long. The message contains the ends of all logs.
        """
        until = time.monotonic() + seconds
        while True:
            try:
                if works() is not False:
                    return
            except OSError:
                pass
            if time.monotonic() > until:
                raise TimeoutError(self.logs())
            time.sleep(0.2)

    def logs(self) -> str:
        """Return the ends of all logs."""
        return "\n".join(f"== {path.name}\n{path.read_text()[-1500:]}" for path in sorted(self.folder.glob("*.log")))

    def stop(self) -> None:
        """End every process that this object started, and wait."""
        for process in reversed(self.running):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(20)
