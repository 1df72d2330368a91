"""What is kept in the folder of the release that it is about: two more files, a column of numbers and a record."""

import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from voxpop.arrays import Int64s
from voxpop.arrow import int64_array, numbers_of, plain
from voxpop.errors import ReleaseError
from voxpop.files.folder import folder_to_read, replace_folder
from voxpop.privacy.guarantee import Guarantee
from voxpop.release.grams import read_parquet, write_parquet
from voxpop.release.record import (
    COUNTS,
    COUNTS_RECORD,
    DAMAGED,
    RANKING,
    RANKING_RECORD,
    TABLE,
    checksum,
    record_bytes,
)
from voxpop.release.release import Release
from voxpop.release.released import Plan
from voxpop.release.saving import already_there, check_target
from voxpop.release.stored_plan import StoredPlan
from voxpop.release.stored_release import load_release

VERSION: Final = 1


class Addition(Protocol):
    """What says more about the grams of a release."""

    @property
    def grams(self) -> Release:
        """The release."""

    @property
    def plan(self) -> Plan:
        """The numbers that ran."""

    @property
    def guarantee(self) -> Guarantee:
        """What it guarantees by itself."""

    @property
    def with_release(self) -> Guarantee:
        """What the release and it guarantee together."""


class Loaded(NamedTuple):
    """What two files said."""

    release: Release
    numbers: Int64s
    plan: StoredPlan
    guarantee: Guarantee


@dataclass(frozen=True, slots=True)
class AdditionFiles:
    """One kind of what is kept beside a release.

    Attributes:
        table: file of the numbers.
        record: file of plan, guarantees and checksums.
        column: of the numbers, int64.
        what: it is called, in the plural.
        made_by: how one makes it.
    """

    table: str
    record: str
    column: str
    what: str
    made_by: str

    def save(
        self, addition: Addition, numbers: Int64s, folder: str | PathLike[str], *, overwrite: bool = False
    ) -> None:
        """Write the numbers beside their release, all files of the folder in one step.

        Raises:
            ReleaseError: if the folder holds another release or such numbers, or cannot be written.
        """
        target = self.check_target(folder, overwrite=overwrite)
        if not load_release(folder).grams.equals(addition.grams.grams):
            raise ReleaseError(f"{folder} holds another release. Save {self.what} beside the release they are of.")
        source = folder_to_read(target)
        files = {each.name: each.read_bytes() for each in sorted(source.iterdir())}
        files[self.table] = write_parquet(pa.table({self.column: int64_array(numbers)}))
        files[self.record] = self._recorded(addition, files)
        try:
            replace_folder(target, files)
        except OSError as error:
            raise ReleaseError(
                f"the {self.what} could not be saved to {folder}: {error.strerror or error}. The release there is as "
                "it was; put that right and save again."
            ) from error

    def check_target(self, folder: str | PathLike[str], *, overwrite: bool = False) -> Path:
        """Return the absolute path of a folder that these can be saved to, before anything is spent on them.

        Raises:
            ReleaseError: if they cannot be written there, or it holds some already.
        """
        target = check_target(folder, overwrite=True)
        if not overwrite and (folder_to_read(target) / self.table).is_file():
            raise already_there(folder, self.what)
        return target

    def is_in(self, folder: str | PathLike[str]) -> bool:
        """Say whether a folder holds some."""
        return (folder_to_read(Path(folder)) / self.record).is_file()

    def load(self, folder: str | PathLike[str]) -> Loaded:
        """Read a release and the numbers beside it.

        Raises:
            ReleaseError: if there are none, or a file is damaged.
        """
        release = load_release(folder)
        source = folder_to_read(Path(folder))
        try:
            record: dict[str, Any] = json.loads((source / self.record).read_bytes())
            table = (source / self.table).read_bytes()
        except OSError as error:
            raise ReleaseError(f"{folder} holds no {self.what}. Make them with {self.made_by}.") from error
        except ValueError as error:
            raise ReleaseError(f"{folder}: {self.record} is not readable JSON. {DAMAGED}") from error
        try:
            self._check_whole(record, {self.table: table, TABLE: (source / TABLE).read_bytes()})
            numbers = numbers_of(plain(read_parquet(table)[self.column])).astype(np.int64)
            return Loaded(release, numbers, StoredPlan(record["plan"]), Guarantee.from_dict(record["guarantee"]))
        except (KeyError, TypeError, ValueError, pa.ArrowException) as error:
            raise self.damaged(folder) from error

    def damaged(self, folder: str | PathLike[str]) -> ReleaseError:
        """Return the refusal of files that were changed."""
        return ReleaseError(f"the {self.what} of {folder} were changed after they were saved. {DAMAGED}")

    @property
    def _kind(self) -> str:
        return f"voxpop {self.what}"

    def _check_whole(self, record: dict[str, Any], files: dict[str, bytes]) -> None:
        whole = record["format"] == self._kind and record["format_version"] == VERSION
        if not (whole and all(checksum(content) == record["checksums"][name] for name, content in files.items())):
            raise ValueError("another format or file")

    def _recorded(self, addition: Addition, files: dict[str, bytes]) -> bytes:
        content = {
            "statement": str(addition.guarantee),
            "statement_with_release": str(addition.with_release),
            "guarantee": addition.guarantee.to_dict(),
            "plan": addition.plan.to_dict(),
            "checksums": {name: checksum(files[name]) for name in (TABLE, self.table)},
        }
        return record_bytes(self._kind, VERSION, content)


TALLIES: Final = AdditionFiles(COUNTS, COUNTS_RECORD, "users", "counts", "`release.count` or `voxpop count`")
RANKINGS: Final = AdditionFiles(RANKING, RANKING_RECORD, "place", "rankings", "`release.top` or `voxpop top`")
