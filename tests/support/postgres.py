"""A PostgreSQL server for the tests. It runs in a new folder and has its socket in this folder."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def binaries() -> Path | None:
    """Return the folder of the server's programs, or None if PostgreSQL is not installed."""
    found = shutil.which("postgres")
    places = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    return places[-1] if places else None


@contextmanager
def server() -> Iterator[str]:
    """Yield the address of a new server. Finally, stop the server and remove its folder."""
    programs = binaries()
    assert programs is not None
    # PostgreSQL does not run as root, so root starts it as the user that the package created.
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    folder = Path(tempfile.mkdtemp(prefix="voxpop-postgres-"))
    if as_user:
        shutil.chown(folder, "postgres")
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    try:
        subprocess.run(
            [*as_user, programs / "initdb", "-D", folder / "data", "-U", "voxpop", "-A", "trust", "-E", "UTF8"], **quiet
        )
        control = [*as_user, programs / "pg_ctl", "-D", folder / "data", "-w"]
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        subprocess.run([*control, "-o", options, "-l", folder / "log", "start"], **quiet)
        try:
            yield f"postgresql://voxpop@/postgres?host={folder}"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **quiet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
