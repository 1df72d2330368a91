"""`voxpop-check FOLDER | certificate.json`: prove the delta of every certificate that is found, and of all together."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flint import arb

from . import PROVED, CertificateError, Result, prove
from .balls import require, up
from .transcript import check

USAGE = "usage: voxpop-check FOLDER | certificate.json ...   (exit code 0: proved, 1: not proved, 2: refused)"
FORMAT = "voxpop certificate"
UNREADABLE = (OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


def main(arguments: list[str] | None = None) -> int:
    """Print the terms, what they come from, and the verdict; return the exit code."""
    paths = [Path(each) for each in (sys.argv[1:] if arguments is None else arguments)]
    if not paths or any(str(path).startswith("-") for path in paths):
        print(USAGE)
        return 2
    return max(of_path(path) for path in paths)


def of_path(path: Path) -> int:
    """Prove what is in a folder or a file."""
    try:
        verdict = _of_files(sorted(path.glob("*.json")) if path.is_dir() else [path])
        print(f"{verdict}: {path}")
        return 0 if verdict == PROVED else 1
    except CertificateError as reason:
        print(f"refused: {path}: {reason}. A certificate must have the form and meet the conditions of its proof.")
    except UNREADABLE as reason:
        print(f"refused: {path} cannot be read as a record of a release ({type(reason).__name__}).")
    return 2


def _of_files(files: list[Path]) -> str:
    records = [json.loads(file.read_text("utf-8"), parse_constant=_no_number) for file in files]
    found = [each for record in records for each in certificates(record)]
    require(bool(found), "there is no certificate")
    results = []
    for certificate, holder in found:
        results.append(prove(certificate))
        show(results[-1])
        stated = holder.get("guarantee") if holder is not certificate else None
        if stated is not None:
            same = (stated["epsilon"], stated["delta"]) == (
                certificate["claim"]["epsilon"],
                certificate["claim"]["delta"],
            )
            require(same, "the guarantee is not the claim of the certificate")
        if "transcript" in holder:
            print(f"    transcript: {check(certificate, holder['transcript'])}")
    if len(results) > 1:
        together(results)
    return next((each.verdict for each in results if each.verdict != PROVED), PROVED)


def _no_number(name: str) -> float:
    raise CertificateError(f"{name} is no number")


def certificates(record: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield every certificate of a record with the object that contains it; not those within another one."""
    if isinstance(record, dict) and record.get("format") == FORMAT:
        yield record, record
    elif isinstance(record, dict):
        for name, value in record.items():
            if isinstance(value, dict) and value.get("format") == FORMAT:
                yield value, record
            elif name != "transcript":
                yield from certificates(value)
    elif isinstance(record, list):
        for value in record:
            yield from certificates(value)


def show(result: Result) -> None:
    """Print the terms of a certificate."""
    print(f"{result.proof}, epsilon {float(result.epsilon):g}, claimed delta {float(result.delta):.9g}")
    for name, bound, source in result.terms:
        print(f"    {name:8} {float(up(bound)):<14.9g} {source}")
    print(f"    total    {float(result.total):<14.9g} {result.verdict}")


def together(results: list[Result]) -> None:
    """Print a guarantee of all certificates together: of releases with budgets fixed beforehand both numbers add up.

    docs/privacy/composition.md, claim 1, with every release as one of its second kind.
    """
    epsilon = up(sum((each.epsilon for each in results), arb(0)))
    delta = up(sum((each.delta for each in results), arb(0)))
    sums = f"epsilon {float(epsilon):.9g}, delta {float(delta):.9g}"
    print(f"all {len(results)} together, fixed beforehand: {sums}")


if __name__ == "__main__":
    sys.exit(main())
