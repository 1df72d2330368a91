"""Load a saved release, checking that it is whole."""

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from voxpop.errors import ColumnError, InputError, InternalError, ReleaseError
from voxpop.files.folder import folder_to_read
from voxpop.keys import Keys
from voxpop.privacy.guarantee import Guarantee
from voxpop.release.about import About
from voxpop.release.grams import from_parquet
from voxpop.release.record import DAMAGED, MODEL_RECORD, RECORD, TABLE, Record, checksum, read_record
from voxpop.release.release import Release
from voxpop.release.stored_plan import StoredPlan

if TYPE_CHECKING:
    from voxpop.sequences.model import SequenceModel

TRIES = 8


def load(folder: str | PathLike[str]) -> "Release | SequenceModel":
    """Load what `Release.save` or `SequenceModel.save` saved.

    Args:
        folder: where it was saved.

    Returns:
        The release or the model. Its plan shows the numbers that ran, and cannot run again.

    Raises:
        ReleaseError: if the folder is neither, is damaged, or was saved in a format this version cannot read.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import voxpop as vp
        >>> from voxpop.release.stored_plan import StoredPlan
        >>> words = vp.Release.from_items(pa.array(["tea"]), StoredPlan({"sigma": 1.2}), vp.Guarantee(4, 1e-7))
        >>> with tempfile.TemporaryDirectory() as here:
        ...     words.save(f"{here}/words")
        ...     again = vp.load(f"{here}/words")
        >>> again == words, again.plan.sigma
        (True, 1.2)
    """
    if (folder_to_read(Path(folder)) / MODEL_RECORD).is_file():
        # By the public face: this package knows no mechanism.
        model: SequenceModel = import_module("voxpop").SequenceModel.load(folder)
        return model
    return load_release(folder)


def load_release(folder: str | PathLike[str]) -> Release:
    """Load a release, and nothing but a release; see `load`."""
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
