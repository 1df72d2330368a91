"""Known faults of the locked dependencies, by pip-audit: 0 none known, 1 some, 3 the advisory service was not reached."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "locked.txt"
NONE, SOME, UNREACHED = 0, 1, 3


def main() -> int:
    """Ask, and say what came."""
    call = [sys.executable, "-m", "pip_audit", "--requirement", LOCK, "--require-hashes", "--disable-pip"]
    done = subprocess.run([*call, "--format", "json", "--timeout", "20"], capture_output=True, text=True)
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        print(f"NOT AUDITED: the advisory service could not be asked ({last[:200]}). Nothing is known either way.")
        return UNREACHED
    faults = [(each["name"], each["version"], fault["id"]) for each in found for fault in each.get("vulns", [])]
    for name, version, fault in faults:
        print(f"{name} {version}: {fault}")
    print(f"{len(found)} packages asked about, {len(faults)} known faults.")
    return SOME if faults else NONE


if __name__ == "__main__":
    sys.exit(main())
