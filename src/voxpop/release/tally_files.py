"""Counts on disk: two more files in the folder of their release."""

import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from voxpop.arrow import int64_array, numbers_of, plain
from voxpop.errors import ReleaseError
from voxpop.files.folder import folder_to_read, replace_folder
from voxpop.privacy.guarantee import Guarantee
from voxpop.release.grams import read_parquet, write_parquet
from voxpop.release.loading import load_release
from voxpop.release.record import COUNTS, COUNTS_RECORD, DAMAGED, TABLE, checksum, record_bytes
from voxpop.release.saving import already_there, check_target
from voxpop.release.stored_plan import StoredPlan

if TYPE_CHECKING:
    from voxpop.release.tally import Tally

FORMAT, FORMAT_VERSION = "voxpop counts", 1


def save_tally(tally: "Tally", folder: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Write the counts beside their release, all files of the folder in one step; see `Tally.save`."""
    target = check_counts_target(folder, overwrite=overwrite)
    if not load_release(folder).grams.equals(tally.grams.grams):
        raise ReleaseError(f"{folder} holds another release. Save the counts beside the release they count.")
    source = folder_to_read(target)
    files = {each.name: each.read_bytes() for each in sorted(source.iterdir())}
    files[COUNTS] = write_parquet(pa.table({"users": int64_array(tally.users)}))
    files[COUNTS_RECORD] = _record(tally, files)
    try:
        replace_folder(target, files)
    except OSError as error:
        raise ReleaseError(
            f"the counts could not be saved to {folder}: {error.strerror or error}. The release there is as it was; "
            "put that right and save again."
        ) from error


def check_counts_target(folder: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Return the absolute path of a folder that counts can be saved to, before anything is spent on them.

    Raises:
        ReleaseError: if they cannot be written there, or it holds counts already.
    """
    target = check_target(folder, overwrite=True)
    if not overwrite and (folder_to_read(target) / COUNTS).is_file():
        raise already_there(folder, "counts")
    return target


def load_tally(folder: str | PathLike[str], make: "type[Tally]") -> "Tally":
    """Read a release and its counts; see `Tally.load`."""
    release = load_release(folder)
    source = folder_to_read(Path(folder))
    try:
        record: dict[str, Any] = json.loads((source / COUNTS_RECORD).read_bytes())
        table = (source / COUNTS).read_bytes()
    except OSError as error:
        raise ReleaseError(f"{folder} holds no counts. Make them with `release.count` or `voxpop count`.") from error
    except ValueError as error:
        raise ReleaseError(f"{folder}: {COUNTS_RECORD} is not readable JSON. {DAMAGED}") from error
    try:
        whole = record["format"] == FORMAT and record["format_version"] == FORMAT_VERSION
        same = all(
            checksum(content) == record["checksums"][name]
            for name, content in ((COUNTS, table), (TABLE, (source / TABLE).read_bytes()))
        )
        if not (whole and same):
            raise ValueError("another format or file")
        users = numbers_of(plain(read_parquet(table)["users"])).astype(np.int64)
        guarantee = Guarantee.from_dict(record["guarantee"])
        return make.of(release, users, float(record["plan"]["error"]), StoredPlan(record["plan"]), guarantee)
    except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise ReleaseError(f"the counts of {folder} were changed after they were saved. {DAMAGED}") from error


def _record(tally: "Tally", files: dict[str, bytes]) -> bytes:
    content = {
        "statement": str(tally.guarantee),
        "statement_with_release": str(tally.with_release),
        "guarantee": tally.guarantee.to_dict(),
        "plan": tally.plan.to_dict(),
        "checksums": {name: checksum(files[name]) for name in (TABLE, COUNTS)},
    }
    return record_bytes(FORMAT, FORMAT_VERSION, content)
