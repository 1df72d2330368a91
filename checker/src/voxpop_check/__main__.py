"""The command `voxpop-check FOLDER | certificate.json | LEDGER`.

The command proves every certificate and the totals of the releases in a folder or file, or every charge of a ledger.
"""

import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from . import NOT_PROVED, PROVED, CertificateError, Result, prove, schema, totals
from .balls import require, up
from .transcript import check

USAGE = "usage: voxpop-check FOLDER | certificate.json | LEDGER ...   (exit code 0: proved, 1: not proved, 2: refused)"
FORMAT = "voxpop certificate"
UNREADABLE = (OSError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError, sqlite3.Error)
LEDGER = b"SQLite format 3\0"
RULE = (int.from_bytes(b"vxpl", "big"), 3)
"""The header of a ledger. It identifies the program and the version of the rule in docs/privacy/composition.md."""
SEED = "NOT PRIVATE: made with a seed; otherwise "
SAID = r"\(([^(),]+), ([^(),]+)\)"
STATED = re.compile(f"(?:{SEED})?{SAID}-DP, one user added or removed; if all budgets were fixed in advance: {SAID}")
STATING = {"guarantee", "certificate", "total"}


def main(arguments: list[str] | None = None) -> int:
    """Print the terms of delta, their sources and the verdict, and return the exit code."""
    paths = [Path(each) for each in (sys.argv[1:] if arguments is None else arguments)]
    if not paths or any(str(path).startswith("-") for path in paths):
        print(USAGE)
        return 2
    return max(of_path(path) for path in paths)


def of_path(path: Path) -> int:
    """Check the claims of a file or of all records in a folder, and return the exit code."""
    try:
        ledger = path.is_file() and path.open("rb").read(len(LEDGER)) == LEDGER
        files = sorted(path.glob("*.json")) if path.is_dir() else [path]
        verdict = _of_ledger(path) if ledger else _of_files(files)
        print(f"{verdict}: {path}")
        return 0 if verdict == PROVED else 1
    except CertificateError as reason:
        print(f"refused: {path}: {reason}. A certificate must have the form and meet the conditions of its proof.")
    except UNREADABLE as reason:
        print(f"refused: {path} cannot be read as a record of a release ({type(reason).__name__}).")
    return 2


def _of_files(files: list[Path]) -> str:
    records = [_parsed(file.read_text("utf-8")) for file in files]
    found = [each for record in records for each in certificates(record)]
    require(bool(found), "there is no certificate")
    proved = [id(holder) for _, holder in found]
    stating = [each for each in records if isinstance(each, dict) and not STATING.isdisjoint(each)]
    require(all(id(each) in proved for each in stating), "a guarantee has no certificate")
    results, releases = [], []
    for certificate, holder in found:
        results.append(prove(certificate))
        show(results[-1])
        frame = schema.certificate(certificate)
        releases.append(totals.release_of(frame, results[-1].terms, certificate["claim"]))
        stated = holder.get("guarantee") if holder is not certificate else None
        if stated is not None:
            same = all(stated[name] == each for name, each in certificate["claim"].items())
            require(same, "the guarantee is not the claim of the certificate")
            said = f"({stated['epsilon']:g}, {stated['delta']:g})-DP, {stated['neighbours']}"
            require(holder.get("statement", said) in (said, SEED + said), "the statement is not the guarantee")
            if stated["private"] is not True:
                print("    NOT PRIVATE: made with a seed. The certificate is for a release without a seed.")
            require(releases[-1].covered_by(stated.get("spend")), "the spend is less than the spend of the certificate")
        require(stated is None or frame.proof != "keys" or "transcript" in holder, "a release has no transcript")
        if "transcript" in holder:
            print(f"    transcript: {check(certificate, holder['transcript'])}")
    _covered([holder for _, holder in found], releases)
    verdicts = [each.verdict for each in results]
    if len(results) > 1:
        verdicts += [*_stated([holder for _, holder in found], releases), together(releases)]
    return next((each for each in verdicts if each != PROVED), PROVED)


def _account(holder: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the account that a record names and its budget, or None if the record names no account."""
    entry = holder.get("metadata", {}).get("ledger")
    if not entry:
        return None
    return entry["ledger"], entry["dataset"], float(entry["budget"]["epsilon"]), float(entry["budget"]["delta"])


def _covered(holders: list[dict[str, Any]], releases: list[totals.Release]) -> None:
    """Require that the budget of each account covers its releases, because a ledger admits no release above it."""
    charged: dict[tuple[Any, ...], list[totals.Release]] = {}
    for holder, each in zip(holders, releases, strict=True):
        if account := _account(holder):
            charged.setdefault(account, []).append(each)
    for (*_, epsilon, delta), some in charged.items():
        most, bound = map(totals.written, (epsilon, delta))
        whole, sum_of_deltas = totals.sums(some)
        within = whole <= most and sum_of_deltas <= bound
        proved = within or totals.composed(schema.ball(most), some) <= schema.ball(bound)
        require(bool(proved), "the budget of a ledger does not cover its charges")


def _stated(holders: list[dict[str, Any]], releases: list[totals.Release]) -> Iterator[str]:
    """Yield a verdict on every total in a record. A total covers a release and the addition to it in this record."""
    alone = [each for each, holder in zip(releases, holders, strict=True) if "total" not in holder]
    first = [holder for holder in holders if "total" not in holder]
    for each, holder in zip(releases, holders, strict=True):
        if "total" in holder:
            said = STATED.fullmatch(holder["total"])
            require(len(alone) == 1 and said is not None, "a total does not belong to a release and an addition")
            pair, (epsilon, delta, fixed, same) = [*alone, each], said.groups() if said else ("",) * 4
            # The budget of a ledger covers all releases that were charged to it. `voxpop-check LEDGER` proves this.
            entries = [_account(each) for each in (*first, holder)]
            accounts = {each for each in entries if each}
            outside = [each for each, entry in zip(pair, entries, strict=True) if not entry]
            sums = totals.sums([*outside, *(totals.Release(*each[2:]) for each in accounts)])
            stated = tuple(f"{float(total):g}" for total in sums)
            held = (fixed == epsilon and not accounts) or totals.holds(float(fixed), pair, float(same))
            proved = held and stated == (epsilon, delta) and (bool(accounts) or same == delta)
            print(f"total of a record, fixed in advance: epsilon {fixed}: {PROVED if proved else NOT_PROVED}")
            yield PROVED if proved else NOT_PROVED


def _of_ledger(path: Path) -> str:
    """Prove that the rule admits every entry of every data set with its recorded guarantee and spend."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
        head = tuple(database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version"))
        require(head == RULE, "this is not a ledger of this version of the rule")
        database.row_factory = sqlite3.Row
        entries = [dict(row) for row in database.execute("SELECT * FROM entries ORDER BY dataset, number")]
        budgets = [tuple(row) for row in database.execute("SELECT name, epsilon, delta FROM datasets ORDER BY rowid")]
    require({each["dataset"] for each in entries} <= {name for name, _, _ in budgets}, "an entry has no data set")
    verdicts = []
    for name, epsilon, delta in budgets:
        own = [each | {"guarantee": _parsed(each["guarantee"])} for each in entries if each["dataset"] == name]
        require(epsilon > 0 and 0 <= delta < 1, "a budget is out of range")
        parts = totals.replay((epsilon, delta), own)
        verdicts.append(NOT_PROVED if "" in parts else PROVED)
        admitted = ", ".join(f"{count} {part or 'by nothing'}" for part, count in parts.items()) or "no entries"
        print(f"{json.dumps(name)}, budget epsilon {epsilon:g}, delta {delta:g}")
        print(f"    admitted: {admitted}: {verdicts[-1]}")
    return NOT_PROVED if NOT_PROVED in verdicts else PROVED


def _parsed(text: str) -> Any:
    return json.loads(text, parse_constant=_no_number, object_pairs_hook=_distinct)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, and require distinct names, because JSON readers differ in how they treat repeated names."""
    require(len({name for name, _ in pairs}) == len(pairs), "a name occurs twice in an object")
    return dict(pairs)


def _no_number(name: str) -> float:
    raise CertificateError(f"{name} is not a number")


def certificates(record: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield every certificate of a record with the object that contains it, except certificates inside certificates."""
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


def together(releases: list[totals.Release]) -> str:
    """Print both totals of all certificates by claim 1 of docs/privacy/composition.md, and return the verdict."""
    epsilon, delta = map(float, totals.sums(releases))
    least = totals.least_epsilon(releases)
    verdict = PROVED if totals.holds(least, releases) else NOT_PROVED
    print(f"all {len(releases)} together, chosen after results: epsilon {epsilon:.9g}, delta {delta:.9g}")
    print(f"all {len(releases)} together, fixed in advance: epsilon {least:.9g}, delta {delta:.9g} {verdict}")
    return verdict


if __name__ == "__main__":
    sys.exit(main())
