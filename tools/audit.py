"""Search for known vulnerabilities of the locked dependencies with pip-audit.

The exit code is 0 without known vulnerabilities, 1 with some, and 3 if the answer of the advisory service is
incomplete. A mirror may answer without any advisories, so the audit first checks a version with a known vulnerability.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "locked.txt"
CONTROL = "requests==2.30.0"  # CVE-2023-32681
NONE, SOME, UNREACHED = 0, 1, 3


def main() -> int:
    """Audit the locked dependencies, print the result and return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        control = Path(folder, "control.txt")
        control.write_text(f"{CONTROL}\n")
        known = answers(control, "--no-deps")
    if known is None or not any(each.get("vulns") for each in known):
        print(
            "NOT AUDITED: the advisory service cannot be reached, or has no advisories, not even the one for "
            f"{CONTROL}."
        )
        return UNREACHED
    found = answers(LOCK, "--require-hashes")
    asked = [each for each in found or [] if "skip_reason" not in each]
    if found is None or len(asked) < len(found):
        print(f"NOT AUDITED: of {len(found or [])} packages, the service answered for {len(asked)}.")
        return UNREACHED
    faults = [(each["name"], each["version"], fault["id"]) for each in asked for fault in each["vulns"]]
    for name, version, fault in faults:
        print(f"{name} {version}: {fault}")
    print(f"{len(asked)} packages checked, {len(faults)} known vulnerabilities.")
    return SOME if faults else NONE


def answers(requirements: Path, *options: str) -> list[dict[str, Any]] | None:
    """Return the answer of pip-audit for each package, or None if there was no answer."""
    call = [sys.executable, "-m", "pip_audit", "--requirement", str(requirements), "--disable-pip", *options]
    done = subprocess.run([*call, "--format", "json", "--timeout", "20"], capture_output=True, text=True)
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return None
    return packages


if __name__ == "__main__":
    sys.exit(main())
