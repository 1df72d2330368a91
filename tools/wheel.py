"""Build each wheel twice from copies in two folders, and compare the bytes: python -m tools.wheel."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = {
    "voxpop": ("src", "pyproject.toml", "hatch_build.py", "tools/description.py", "README.md", "LICENSE"),
    "flower": ("src", "pyproject.toml", "README.md", "LICENSE"),
}
"""The files of each distribution, from its folder."""
EPOCH = "1767225600"  # 1 January 2026


def built(folder: Path, name: str = "voxpop") -> Path:
    """Return the wheel that is built from a copy of the sources in a folder.

    Args:
        folder: A folder that does not exist yet.
        name: The distribution, a key of `PARTS`.
    """
    copy = folder / name
    copy.mkdir(parents=True)
    for part in PARTS[name]:
        source = (ROOT if name == "voxpop" else ROOT / name) / part
        if source.is_dir():
            shutil.copytree(source, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (copy / part).parent.mkdir(exist_ok=True)
            shutil.copyfile(source, copy / part)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", EPOCH)}
    call = [sys.executable, "-m", "build", "--wheel", "--outdir", folder / "dist", copy]
    subprocess.run(call, check=True, env=environment, stdout=subprocess.DEVNULL)
    return next((folder / "dist").glob("*.whl"))


def main() -> int:
    """Return 0 if both wheels of each distribution are the same and 1 otherwise, and copy one of each to dist/."""
    (ROOT / "dist").mkdir(exist_ok=True)
    same = True
    for name in PARTS:
        with tempfile.TemporaryDirectory() as here:
            first, second = built(Path(here, "one"), name), built(Path(here, "another", "place"), name)
            digests = [hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in (first, second)]
            shutil.copyfile(first, ROOT / "dist" / first.name)
        print(f"{first.name}: {' and '.join(dict.fromkeys(digests))}")
        same &= digests[0] == digests[1]
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
