"""The configuration of a node with its table, bounds, ledger and log.

The operator of the node writes the configuration, and no server can change it.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

from filelock import FileLock, Timeout

from voxpop.errors import BudgetError, InputError
from voxpop.ledger.ledger import Ledger, LedgerAccount
from voxpop.ledger.storage import traces_of
from voxpop.privacy.budget import Budget
from voxpop_flower.run import Settings

COLUMNS = ("text", "tokens", "items", "sequence")
LEDGER, DATASET, RUNS, LOG, LOCK = "ledger.json", "node", "runs", "answers.log", ".lock"
"""The files and folders of a node in its folder `state`."""
KEEP_HOURS = 24.0
PATIENCE = 600.0
"""The number of seconds to wait while the node works on another message, such as the first of a large table."""


@final
@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The configuration of one node.

    Attributes:
        table: The source, its columns, and the tokenizer, by name.
        state: The folder of the node's ledger, log and runs.
        total: The budget of all runs together.
        most: The maximum budget per run.
        secure: Whether the node sends only masked sums.
        allow_seed: Whether the node votes in runs with a seed, which are not private.
        keep_hours: The maximum age of the folder of a run in hours. Older folders are deleted.
    """

    table: Mapping[str, str]
    state: Path
    total: Budget
    most: Budget
    secure: bool
    allow_seed: bool
    keep_hours: float

    @staticmethod
    def of(config: Mapping[str, Any]) -> "NodeSettings":
        """Return the settings of a node config.

        Raises:
            InputError: A value is missing or out of range.
        """
        for name in ("state", "total-epsilon", "total-delta"):
            if name not in config:
                raise InputError(
                    f"the node config must set `{name}`. `state` is an existing folder for the ledger, the log and the "
                    "runs of this node, and `total-epsilon` and `total-delta` are the budget of all its runs together."
                )
        state = Path(str(config["state"])).resolve()
        if not state.is_dir():
            raise InputError(f"`state` of the node config must be an existing folder. Create {state}, or correct it.")
        total = Budget(_number(config, "total-epsilon"), _number(config, "total-delta"))
        most = [_number(config, f"max-{name}", getattr(total, name)) for name in ("epsilon", "delta")]
        flags = {name: config.get(name, name == "secure") for name in ("secure", "allow-seed")}
        for name, value in flags.items():
            if type(value) is not bool:
                raise InputError(f"`{name}` of the node config must be true or false, got {type(value).__name__}.")
        keep_hours = _number(config, "keep-hours", KEEP_HOURS)
        if not keep_hours > 0:
            raise InputError(f"`keep-hours` of the node config must be above 0, got {keep_hours:g}.")
        table = {name: str(config[name]) for name in ("source", "user", "tokenizer", *COLUMNS) if name in config}
        return NodeSettings(table, state, total, Budget(*most), flags["secure"], flags["allow-seed"], keep_hours)

    def check(self, settings: Settings) -> None:
        """Check that this node may take part in a run. The reason for an error never depends on data.

        Raises:
            BudgetError: The run exceeds the maximum budget per run.
            InputError: The run has a seed or unmasked sums, which this node does not accept.
        """
        for name in ("epsilon", "delta"):
            asked, most = getattr(settings.budget, name), getattr(self.most, name)
            if not asked <= most:
                raise BudgetError(
                    f"the run has a {name} of {asked:g}, but this node takes part in runs of at most {most:g}. Start "
                    f"a run with less, or set `max-{name}` in the node config."
                )
        if settings.seed is not None and not self.allow_seed:
            raise InputError(
                "the run has a seed, so its operator can compute which users are sampled. Start a run without `seed`; "
                "for trials with public data, set `allow-seed=true` in the node config."
            )
        if self.secure and not settings.secure:
            raise InputError(
                "the run adds sums without masks, but this node sends only masked sums. Start a run with "
                "`secure=true`, or set `secure=false` in the node config."
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Exclude other processes of this node, so that the node works on one message at a time."""
        lock = FileLock(self.state / LOCK, timeout=PATIENCE, mode=0o600)
        try:
            lock.acquire()
        except Timeout:
            raise InputError("the node is working on another message. Start a new run later.") from None
        try:
            yield
        finally:
            lock.release()

    def account(self) -> LedgerAccount:
        """Return the account of this node, which is created with the first run.

        Raises:
            LedgerError: The ledger was lost or damaged, or it has a different total budget.
        """
        path = self.state / LEDGER
        create = not path.exists() and not traces_of(path)
        return Ledger(path).open(DATASET, self.total, create=create)

    def runs(self) -> Path:
        """Return the folder of the runs, which only the owner can read.

        Raises:
            InputError: Other users of the machine can read the folder.
        """
        folder = self.state / RUNS
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise InputError(
                f"{folder} must be a folder that only the user of this node can read. Remove it, or change its owner "
                "and its mode to 0700."
            )
        return folder

    def log(self, **line: Any) -> None:
        """Append one line to the log of the node."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        text = json.dumps({"time": now, **line}, ensure_ascii=False) + "\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(self.state / LOG, flags, 0o600), "ab") as file:
            file.write(text.encode())


def _number(config: Mapping[str, Any], name: str, default: float | None = None) -> float:
    value = config.get(name, default)
    if type(value) not in (int, float):
        raise InputError(f"`{name}` of the node config must be a number, got {type(value).__name__}.")
    return float(value)
