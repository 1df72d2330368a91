"""Read the files of a saved release, checking that they are whole."""

from os import PathLike
from pathlib import Path

import pyarrow as pa

from voxpop.errors import ColumnError, InputError, InternalError, ReleaseError
from voxpop.files.folder import folder_to_read
from voxpop.keys import Keys
from voxpop.privacy.guarantee import Guarantee
from voxpop.release.about import About
from voxpop.release.grams import from_parquet
from voxpop.release.record import DAMAGED, RECORD, TABLE, Record, checksum, read_record
from voxpop.release.release import Release
from voxpop.release.stored_plan import StoredPlan

TRIES = 8


def load_release(folder: str | PathLike[str]) -> Release:
    """Load a release, and nothing but a release; see `voxpop.load`."""
    record_bytes, table_bytes = _read_together(Path(folder))
    record = read_record(record_bytes, str(Path(folder, RECORD)))
    if checksum(table_bytes) != record.checksum:
        raise ReleaseError(f"{Path(folder, TABLE)} is not the file that was saved: its checksum differs. {DAMAGED}")
    return _release(record, table_bytes, folder)


def _release(record: Record, table: bytes, folder: str | PathLike[str]) -> Release:
    try:
        guarantee = Guarantee.from_dict(record.guarantee)
        keys = None if record.keys is None else Keys.from_list(record.keys)
        about = About.from_dict(record.about)
        return Release(from_parquet(table, keys), StoredPlan(record.plan), guarantee, record.reading, keys, about)
    except (InputError, KeyError, TypeError, ValueError, pa.ArrowException, ColumnError, InternalError) as error:
        raise ReleaseError(f"{folder} was changed after it was saved. {DAMAGED}") from error


def _read_together(folder: Path) -> tuple[bytes, bytes]:
    """Read both files of one and the same release, even while another process is replacing the folder."""
    for _ in range(TRIES):
        source = folder_to_read(folder)
        record, table = _read(source, RECORD, folder), _read(source, TABLE, folder)
        if _read(source, RECORD, folder) == record:
            return record, table
    raise ReleaseError(f"{folder} is being replaced again and again; try once more when it is quiet.")


def _read(source: Path, name: str, folder: Path) -> bytes:
    try:
        return (source / name).read_bytes()
    except FileNotFoundError as error:
        if not source.exists():
            raise ReleaseError(f"{folder} does not exist. {_HINT}") from error
        raise ReleaseError(f"{folder} is not a release: it holds no {name}. {_HINT}") from error
    except NotADirectoryError as error:
        raise ReleaseError(f"{folder} is a file and cannot be read as a release. {_HINT}") from error
    except OSError as error:
        raise ReleaseError(f"{folder / name} cannot be read: {error.strerror}.") from error


_HINT = "Give the folder that `release.save(folder)` or `voxpop items -o` made."
