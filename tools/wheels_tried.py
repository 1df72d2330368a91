"""Test the wheel as users install it: python -m tools.wheels_tried [FOLDER] [--publish].

The program builds the sdist and the wheel, checks their descriptions with twine, and installs the wheel into clean
environments. For each Python of `PYTHONS` on this machine, there is one environment with the newest dependencies that
the wheel allows and one with the oldest. In each environment, the program releases from a CSV file on the command line
and from Python, and every extra must resolve. The program prints a table. The exit code is 1 if any step failed. With
--publish it is also 1 if the address of the repository is not set.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
RESOLUTIONS = ("newest", "oldest")
NAMED = ("numpy", "polars", "pyarrow")
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
ROWS = 2000
SCRIPT = """
import polars as pl
import voxpop as vp

table = pl.DataFrame({"who": range(3000), "what": ["thank you very much", "see you", "thank you"] * 1000})
posts = vp.read(table, user="who", text="what")
words = vp.Items().release(posts, vp.Budget(2, 1e-7))
phrases = vp.NGrams(max_length=3, max_phrases_per_user=10).release(posts, vp.Budget(4, 1e-7))
model = vp.Sequences(alphabet=words, max_length=4).release(vp.read(table, user="who", text="what"), vp.Budget(2))
phrases.with_metadata(title="Tried").save("phrases")
assert "thank" in words and ("thank", "you") in phrases and vp.load("phrases") == phrases and len(model)
assert vp.load("released").to_list() == ["milk", "oats", "tea"]
assert "you" in [each.token for each in phrases.complete("thank")]  # noise may add other tokens
vp.exports.write(words, "words.txt")
"""


def main() -> int:
    """Build, check and test the wheel, and print a row for each environment."""
    named = [each for each in sys.argv[1:] if each != "--publish"]
    folder = Path(named[0]).resolve() if named else Path(tempfile.mkdtemp(prefix="voxpop-wheels-"))
    folder.mkdir(parents=True, exist_ok=True)
    wheel = built(folder)
    bad = described_badly(wheel) + ("--publish" in sys.argv and has_no_address(wheel))
    tried = [(python, which) for python in pythons() for which in RESOLUTIONS]
    print(f"{'python':8} {'dependencies':13} {'numpy':9} {'polars':9} {'pyarrow':9} {'seconds':>8}  outcome")
    for python, which in tried:
        bad += not row(folder, wheel, python, which)
    for extra in extras():
        bad += not resolves(folder, wheel, extra)
    versions = {python for python, _ in tried}
    print(f"{len(tried)} environments of {len(versions)} Pythons, {len(extras())} extras: {bad} failed")
    return 1 if bad else 0


def built(folder: Path) -> Path:
    """Return the wheel, which is built from the sdist as for an index."""
    dist = folder / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", dist, ROOT], check=True, stdout=subprocess.DEVNULL)
    return next(dist.glob("*.whl"))


def described_badly(wheel: Path) -> int:
    """Return the number of errors in the description for an index.

    A failure of twine counts as an error, and so does each relative link.
    """
    failed = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *wheel.parent.iterdir()], check=False)
    relative = relative_links(description(wheel))
    for link in relative:
        print(f"relative link in the long description: {link}")
    return (failed.returncode != 0) + len(relative)


def description(wheel: Path) -> str:
    """Return the long description of a wheel."""
    return metadata(wheel).partition("\n\n")[2]


def metadata(wheel: Path) -> str:
    """Return the metadata of a wheel."""
    with ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


def relative_links(text: str) -> list[str]:
    """Return the targets of links and pictures that exist only in a checkout."""
    return re.findall(r"\]\(((?!https?:|mailto:|#)[^)]*)\)", text)


def has_no_address(wheel: Path) -> bool:
    """Return whether the wheel contains no address of the project. If there is no address, print a message."""
    if "\nProject-URL: Homepage, https://" in metadata(wheel).partition("\n\n")[0]:
        return False
    print("pyproject.toml names no address of the repository: see docs/releasing.md")
    return True


def pythons() -> Iterator[str]:
    """Yield the Pythons that are installed on this machine, without downloading any."""
    for version in PYTHONS:
        found = uv("python", "find", "--no-python-downloads", version)
        kept = sorted(PYENV.glob(f"{version}.*/bin/python"))  # These versions are not on the PATH.
        if found.returncode == 0:
            yield found.stdout.strip()
        elif kept:
            yield str(kept[-1])


def row(folder: Path, wheel: Path, python: str, which: str) -> bool:
    """Test one environment, print its row, and return whether it passed."""
    begun = time.perf_counter()
    version = subprocess.run(
        [python, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"],
        capture_output=True,
        text=True,
        check=True,
    )
    place = folder / f"{version.stdout.strip()}-{which}"
    shutil.rmtree(place, ignore_errors=True)
    installed = install(place, wheel, python, which)
    outcome = installed or used(place)
    found = {name: known(place, name) for name in NAMED}
    numbers = " ".join(f"{found[name]:9}" for name in NAMED)
    print(
        f"{version.stdout.strip():8} {which:13} {numbers} {time.perf_counter() - begun:8.1f}  {outcome or 'ok'}",
        flush=True,
    )
    return not outcome


def install(place: Path, wheel: Path, python: str, which: str) -> str:
    """Install the wheel with the newest or the oldest dependencies, and return the error, or "" after a success."""
    uv("venv", "--python", python, str(place / "env"))
    needs = place / "needs.txt"
    needs.write_text("\n".join(project()["dependencies"]))
    resolution = ["--resolution", "lowest-direct", "--requirement", str(needs)] if which == "oldest" else []
    done = uv("pip", "install", "--python", str(place / "env"), "--only-binary", ":all:", *resolution, str(wheel))
    return "" if done.returncode == 0 else f"not installed: {done.stderr.strip().splitlines()[-1]}"


def used(place: Path) -> str:
    """Release from the command line and from Python, and return the error, which is empty after a success."""
    rows = "".join(f"{who},{('tea', 'milk', 'oats')[who % 3]}\n" for who in range(ROWS))
    (place / "small.csv").write_text(f"who,what\n{rows}")
    (place / "script.py").write_text(SCRIPT)
    bin_ = place / "env" / ("Scripts" if os.name == "nt" else "bin")
    budget = ["--epsilon", "1", "--delta", "1e-7"]
    calls = [
        [bin_ / "voxpop", "--version"],
        [bin_ / "voxpop", "items", "small.csv", "--user", "who", "--items", "what", *budget, "-o", "released"],
        [bin_ / "voxpop", "show", "released"],
        [bin_ / "python", "-W", "error::DeprecationWarning:voxpop", "script.py"],
    ]
    outside = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    for call in calls:
        done = subprocess.run(list(map(str, call)), cwd=place, env=outside, capture_output=True, text=True, check=False)
        if done.returncode:
            (place / "failed.txt").write_text(done.stdout + done.stderr)
            return f"{' '.join(map(str, call[1:3]))} failed; see {place / 'failed.txt'}"
    return ""


def known(place: Path, package: str) -> str:
    """Return the version of a package in an environment."""
    shown = uv("pip", "show", "--python", str(place / "env"), package).stdout
    found = re.search(r"^Version: (.*)$", shown, re.MULTILINE)
    return found.group(1) if found else "-"


def resolves(folder: Path, wheel: Path, extra: str) -> bool:
    """Return whether an extra can be installed, without installing it."""
    here = next(folder.glob("*-newest"))
    done = uv("pip", "install", "--dry-run", "--python", str(here / "env"), f"voxpop[{extra}] @ {wheel.as_uri()}")
    print(f"extra {extra}: {'resolves' if done.returncode == 0 else done.stderr.strip().splitlines()[-1]}", flush=True)
    return done.returncode == 0


def extras() -> list[str]:
    """Return the names of all extras."""
    return list(project()["optional-dependencies"])


def project() -> dict[str, dict[str, list[str]]]:
    """Return the table `project` of pyproject.toml."""
    found: dict[str, dict[str, list[str]]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def uv(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Call uv with the certificates that this machine trusts, and return its result."""
    # UV_NATIVE_TLS is for older versions of uv, and UV_SYSTEM_CERTS for newer versions.
    trusting = {**os.environ, "UV_NATIVE_TLS": "true", "UV_SYSTEM_CERTS": "true"}
    call = [sys.executable, "-m", "uv", *arguments]
    return subprocess.run(call, env=trusting, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
