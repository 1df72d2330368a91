"""The folder of a series, which contains the whole private state in one file that is replaced in one step.

Each state contains the checksum of the state before it. Format version 3 is an .npz file of arrays
(`NightlyPools.arrays`) and the array `record`, which is UTF-8 JSON with the fields below. If the caller gave a key, the
whole file is encrypted. On Spark, the record contains the name of a folder of Parquet files next to the file.
docs/guides/every-night.md describes their contents.
"""

import io
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Union, final

import numpy as np

from voxpop.engine.local.nights import NightlyPools
from voxpop.errors import ReleaseError
from voxpop.files.folder import fresh_prefix, parsed_json, read_whole, replace_file, sync
from voxpop.ledger.ledger import Ledger
from voxpop.ledger.storage import LOCK_PATIENCE
from voxpop.privacy.secret import SEALED, Secret, seal, unseal

if TYPE_CHECKING:
    from voxpop.engine.spark.nights import SparkNights

NightPools = Union[NightlyPools, "SparkNights"]
STATE_FILE = "state.voxpop"
FORMAT, VERSION = "voxpop series", 3
LOCK = ".lock"
FRAMES = "frames-"


@final
@dataclass(slots=True)
class Record:
    """The content of a state except its arrays.

    Attributes:
        plan: The public numbers of the plan.
        secret: The key of all draws, in hexadecimal digits. `repr` omits it.
        private: Whether the series is private, which is False for a series with a seed.
        night: The last complete night, or 0 before the first night.
        before: The last complete night with rows before `night`.
        begun: The night whose rows and payments are stored but whose noise is not drawn yet, or 0.
        started: Whether any night was run, with or without rows.
        token_source: The source of the tokens, or "" before the first night.
        keys: The names and types of the items' columns.
        user_columns: The names of the user columns, which are empty until a table declares their types.
        families: The type families of the values in these columns.
        listed: The names of the columns of the public list, or an empty list if it has no columns.
        ledger: The path of the ledger, the data set, and the number of the charged entry, or an empty list without a
            ledger.
        frames: The folder of Parquet files of a state on Spark, or "".
        places: The number of groups of users in that folder.
        previous: The checksum of the state that this state replaced.
        format: The name of the file format.
        version: The version of the format.
    """

    plan: dict[str, Any]
    secret: str = field(repr=False)
    private: bool = True
    night: int = 0
    before: int = 0
    begun: int = 0
    started: bool = False
    token_source: str = ""
    keys: list[dict[str, str]] = field(default_factory=list)
    user_columns: list[str] = field(default_factory=list)
    families: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    ledger: list[Any] = field(default_factory=list)
    frames: str = ""
    places: int = 0
    previous: str = ""
    format: str = FORMAT
    version: int = VERSION


@final
class Store:
    """The reader and writer of the state of one series. Use it only while `locked`."""

    def __init__(self, folder: Path, key: bytes | None) -> None:
        self._folder, self._key = folder, key

    @property
    def exists(self) -> bool:
        """Whether the folder contains a state."""
        return (self._folder / STATE_FILE).is_file()

    def make_folder(self) -> None:
        """Create the folder of a new series and make it private. A folder with other files is rejected unchanged.

        Raises:
            ReleaseError: The folder contains other files or cannot be created.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            own = (LOCK, STATE_FILE, FRAMES, fresh_prefix(STATE_FILE))
            if any(not name.startswith(own) for name in os.listdir(self._folder)):
                raise ReleaseError(
                    f"{self._folder} contains other files, and a series would make the folder accessible only to you. "
                    "Give a new or an empty folder."
                )
            os.chmod(self._folder, 0o700)
        except OSError as error:
            raise ReleaseError(
                f"{self._folder} cannot be the folder of a series: {error.strerror or error}. Give another folder."
            ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude other processes. The folder must exist, so opening a wrong folder changes nothing there.

        Raises:
            ReleaseError: Another process runs this series, or the folder cannot be written.
        """
        from filelock import FileLock, Timeout

        lock = FileLock(self._folder / LOCK, timeout=LOCK_PATIENCE, mode=0o600)
        try:
            lock.acquire()
        except Timeout:
            raise ReleaseError(f"{self._folder} is used by another process. Wait until its night has ended.") from None
        except OSError as error:
            raise ReleaseError(
                f"{self._folder} cannot be locked: {error.strerror or error}. Run the series as the user who started "
                "it, on a disk that can be written."
            ) from None
        try:
            yield
        finally:
            lock.release()

    def require(self) -> None:
        """Check that the folder has a state, before anything is written to it.

        Raises:
            ReleaseError: The folder has no state.
        """
        if not self.exists:
            raise self._absent()

    def _absent(self) -> ReleaseError:
        return ReleaseError(
            f"{self._folder} contains no state of a series. Give the folder that the series was started in. If the "
            "state is lost, the series ends, and a new series is charged again."
        )

    def read(self) -> tuple[Record, NightPools]:
        """Return the state after comparing it with its ledger.

        Raises:
            ReleaseError: There is no state, or it is damaged, encrypted, or from a different version.
            LedgerError: The state is not the newest state.
        """
        try:
            content = read_whole(self._folder / STATE_FILE)
        except OSError:
            raise self._absent() from None
        whole = content
        if content.startswith(SEALED) != (self._key is not None):
            state = "is encrypted" if self._key is None else "is not encrypted"
            raise ReleaseError(
                f"{self._folder / STATE_FILE} {state}. Give `key` if and only if the series was started with one."
            )
        if self._key is not None:
            whole = unseal(content, self._key)
        try:
            with np.load(io.BytesIO(whole), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            fields = parsed_json(arrays.pop("record").tobytes())
            version = fields.get("format"), fields.get("version")
            record = Record(**fields) if version == (FORMAT, VERSION) else None
            pools = None if record is None or record.frames else NightlyPools.of(arrays)
        except Exception as error:  # the file can contain anything
            raise ReleaseError(
                f"{self._folder / STATE_FILE} is damaged. Restore the file of the last night. Without it, "
                "the series ends."
            ) from error
        if record is None:
            raise ReleaseError(
                f"{self._folder / STATE_FILE} has another version. Use the version of voxpop that wrote it."
            )
        # If the state is one step ahead of the ledger, a run stopped after it wrote the state and before it wrote the
        # ledger. In this case, nothing was published after the preceding state.
        _advance(record, content)
        if pools is None:
            from voxpop.engine.spark.nights import SparkNights

            secret = Secret(bytes.fromhex(record.secret), private=record.private)
            return record, SparkNights(self._folder / record.frames, record.places, secret)
        return record, pools

    def write(self, record: Record, pools: NightPools) -> None:
        """Replace the state in one step, and then record it in the ledger.

        No part of the state may be published earlier.

        Raises:
            ReleaseError: The folder cannot be written, and the state is unchanged.
        """
        arrays = pools.arrays() if isinstance(pools, NightlyPools) else self._frames(record, pools)
        buffer = io.BytesIO()
        text = np.frombuffer(json.dumps(asdict(record), ensure_ascii=False).encode(), np.uint8)
        np.savez(buffer, allow_pickle=False, record=text, **arrays)
        content = buffer.getvalue() if self._key is None else seal(buffer.getvalue(), self._key)
        try:
            replace_file(self._folder / STATE_FILE, content)
            sync(self._folder)
        except OSError as error:
            raise ReleaseError(
                f"{self._folder} cannot be written: {error.strerror or error}. The night is not complete. Make space, "
                "and run it again on the same rows."
            ) from None
        _advance(record, content)
        for left in self._folder.glob(f"{FRAMES}*"):  # folders that were replaced, or that a killed process left behind
            if left.name != record.frames:
                rmtree(left, ignore_errors=True)

    def _frames(self, record: Record, pools: "SparkNights") -> dict[str, Any]:
        """Write the files of a state on Spark to a new folder, and record the name of the folder."""
        if self._key is not None:
            raise ReleaseError(
                "the state of a series on Spark cannot be encrypted with a key, because executors would need the key. "
                "Start the series without a key, and encrypt the disk."
            )
        fresh = self._folder / f"{FRAMES}{uuid.uuid4().hex}"
        fresh.mkdir(mode=0o700)
        pools.write(fresh)
        record.frames, record.places = fresh.name, pools.places
        return {}


def _advance(record: Record, content: bytes) -> None:
    """Record the checksum of a state in the ledger, if the series has one."""
    checksum = _checksum(content, record)
    if record.ledger:
        path, name, number = record.ledger
        Ledger(path).account(name).advance(number, record.previous, checksum)
    record.previous = checksum


def _checksum(content: bytes, record: Record) -> str:
    # The hash uses the key of the series, so readers of a ledger cannot test guesses about the state.
    return f"blake2b:{blake2b(content, key=bytes.fromhex(record.secret), digest_size=32).hexdigest()}"
