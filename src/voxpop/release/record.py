"""`release.json`: what a saved release says about itself, and nothing more."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from voxpop.errors import ReleaseError

if TYPE_CHECKING:
    from voxpop.release.about import About
    from voxpop.release.released import Released

FORMAT = "voxpop release"
FORMAT_VERSION = 1
TABLE = "release.parquet"
RECORD = "release.json"
MODEL_RECORD = "model.json"
ABOUT = "about"
COUNTS = "counts.parquet"
COUNTS_RECORD = "counts.json"
RANKING = "top.parquet"
RANKING_RECORD = "top.json"
BESIDE = (COUNTS, COUNTS_RECORD, RANKING, RANKING_RECORD)
DAMAGED = "The folder is damaged: copy it again from where it came, or make the release again."


@dataclass(frozen=True, slots=True)
class Record:
    """The parts of a `release.json` that a reader needs."""

    plan: dict[str, Any]
    guarantee: dict[str, Any]
    checksum: str
    reading: str = ""
    keys: list[dict[str, str]] | None = None
    about: dict[str, str] = field(default_factory=dict)


def write_record(release: "Released", table: bytes) -> bytes:
    """Return the bytes of `release.json`; equal releases give equal bytes."""
    content = {
        **about_entry(release.about),
        "statement": str(release.guarantee),
        "guarantee": release.guarantee.to_dict(),
        "plan": release.plan.to_dict(),
        **({"reading": release.reading} if release.reading else {}),
        **({} if release.keys is None else {"keys": release.keys.to_list()}),
        "checksums": {TABLE: checksum(table)},
    }
    return record_bytes(FORMAT, FORMAT_VERSION, content)


def record_bytes(kind: str, version: int, content: Mapping[str, Any]) -> bytes:
    """Return a record as JSON: of which kind and version it is, by which voxpop, and what it says."""
    from voxpop.version import installed_version

    heading = {"format": kind, "format_version": version, "voxpop_version": installed_version()}
    return (json.dumps({**heading, **content}, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def parsed_record(content: bytes, where: str, kind: str, otherwise: str) -> dict[str, Any]:
    """Return what a record of some kind says.

    Args:
        content: its bytes.
        where: what it is called in messages.
        kind: which kind it should be of.
        otherwise: the message where it is of another kind.

    Raises:
        ReleaseError: if it is no such record, or no record at all.
    """
    try:
        parsed = json.loads(content)
    except ValueError as error:
        raise ReleaseError(f"{where} is not readable JSON; it may be truncated. {DAMAGED}") from error
    if not isinstance(parsed, dict) or parsed.get("format") != kind:
        raise ReleaseError(otherwise)
    return parsed


def read_record(content: bytes, where: str) -> Record:
    """Return what a `release.json` says.

    Raises:
        ReleaseError: if it is not one, is damaged, or is of a version this voxpop cannot read.
    """
    parsed = _parse(content, where)
    version = parsed.get("format_version")
    if version != FORMAT_VERSION:
        raise ReleaseError(
            f"{where} has format version {version!r}; this voxpop reads {FORMAT_VERSION}. "
            "Use the version of voxpop that saved it, or a newer one."
        )
    try:
        numbers, promise, reading = dict(parsed["plan"]), dict(parsed["guarantee"]), str(parsed.get("reading", ""))
        said = dict(parsed.get(ABOUT, {}))
        record = Record(numbers, promise, str(parsed["checksums"][TABLE]), reading, parsed.get("keys"), said)
    except (KeyError, TypeError, ValueError) as error:
        raise ReleaseError(f"{where} is incomplete. {DAMAGED}") from error
    return record


def about_entry(about: "About") -> dict[str, dict[str, str]]:
    """Return what a record says of its making, where anything was said."""
    said = about.to_dict()
    return {ABOUT: said} if said else {}


def same_but_for_words(one: bytes, other: bytes) -> bool:
    """Say whether two records describe the same thing, whatever was said about it."""
    try:
        records = [json.loads(each) for each in (one, other)]
    except ValueError:
        return False
    return all(isinstance(each, dict) for each in records) and _bare(records[0]) == _bare(records[1])


def _bare(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != ABOUT}


def is_record(content: bytes) -> bool:
    """Say whether these bytes are a `release.json`, of whatever version."""
    try:
        _parse(content, "")
    except ReleaseError:
        return False
    return True


def checksum(content: bytes) -> str:
    """Return the checksum of a file as `release.json` writes it."""
    return f"sha256:{sha256(content).hexdigest()}"


def _parse(content: bytes, where: str) -> dict[str, Any]:
    return parsed_record(content, where, FORMAT, f"{where} was not written by voxpop: this folder is not a release.")
