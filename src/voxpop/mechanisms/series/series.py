"""A series of nightly releases under one budget. Each night runs through the gate."""

from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.contract import Engine, check_engine
from voxpop.engine.data import Corpus
from voxpop.engine.local.nights import NightlyPools, Removed, States
from voxpop.errors import InputError, LedgerError, ReleaseError
from voxpop.kernels.arrays import Bools, Int64s
from voxpop.ledger.ledger import LedgerAccount
from voxpop.mechanisms.series.plan import SeriesPlan, states_of
from voxpop.mechanisms.series.state import NightPools, Record, Store
from voxpop.privacy.gate.nights import NightsGate
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.planned import GateCall, run_passes, with_record
from voxpop.privacy.secret import Secret
from voxpop.reading.arrow import int64_array
from voxpop.reading.keys import Keys
from voxpop.reading.users import key_of
from voxpop.release.release import Release
from voxpop.release.result import Report
from voxpop.release.table import with_result


@final
class Series:
    """A series of releases, one every night, under one budget. `Items.series` returns it.

    All nights together are (epsilon, delta)-private for each user id with all its rows in the period. The folder
    contains the private state, so only its owner may read it, and it must not be copied or restored. Start only one
    series for the same people and the same period.

    Example:
        >>> import tempfile
        >>> import polars as pl
        >>> import voxpop as vp
        >>> with tempfile.TemporaryDirectory() as here:
        ...     series = vp.Items().series(f"{here}/drinks", vp.Budget(epsilon=3, delta=1e-6), nights=3)
        ...     for night in (1, 2, 3):
        ...         rows = pl.DataFrame({"who": range(3000), "what": ["tea", "milk"] * 1500})
        ...         new = series.run(vp.read(rows, user="who", items="what"), night=night)
        ...     sorted(series.released["what"].to_pylist())
        ['milk', 'tea']
    """

    def __init__(self, folder: str | PathLike[str], key: bytes | None = None) -> None:
        """Open a series that was started earlier; see `Items.series`."""
        self.folder = Path(folder).resolve()
        self._store = Store(self.folder, key)
        self._store.require()

    @staticmethod
    def start(
        folder: str | PathLike[str],
        plan: SeriesPlan,
        ledger: LedgerAccount | None = None,
        seed: int | None = None,
        key: bytes | None = None,
    ) -> "Series":
        """Charge a series and write its first state."""
        target = Path(folder).resolve()
        store, secret, guarantee = Store(target, key), Secret.of(seed), plan.guarantee
        if ledger is not None and seed is not None:
            raise InputError("a series with a seed is not private, so it cannot be charged. Remove one of the two.")
        store.make_folder()
        with store.locked():
            if store.exists:
                raise ReleaseError(
                    f"{folder} contains a series already. Open it without a budget, or give another folder for another "
                    "series, which is charged."
                )
            record = Record(plan.to_dict(), secret.stored().hex(), secret.private)
            if ledger is not None:
                label = f"series {target.name}"
                if (earlier := ledger.entry(label)) is not None and earlier.release:
                    raise LedgerError(
                        f'The ledger has a series "{target.name}", whose state is not in {folder}. If the state is '
                        "lost, the series ends. Start another series, which is charged, in a folder with another name."
                    )
                entry = ledger.charge(guarantee, "series", label)
                record.ledger = [str(Path(ledger.path).resolve()), ledger.name, entry.number]
            known, pools = plan.mechanism.known, NightlyPools.empty()
            if known is not None:
                # The items of the list are spelled in the same way as the rows of the first night.
                pools.recognise([known.given])
                record.listed = list(known.names)
            store.write(record, pools)
        return Series(folder, key)

    def run(self, data: Corpus, night: int | None = None) -> Release:
        """Add the rows of a night, and return the items that were released since the previous night.

        An interrupted night is completed from the state. If the last night is repeated, its release is returned again,
        and the rows are ignored.

        Args:
            data: The rows of the night, as returned by `voxpop.read`. The ids of users must have the same spelling
                every night.
            night: The number of the night, starting at 1. The default is the next night. Give the number if a job can
                be repeated or skipped. Skipped nights count as nights without rows.

        Raises:
            InputError: If the number is out of order, or the columns differ from the columns of the first night.
            ReleaseError: If the series has ended, or its state is missing or damaged.
            LedgerError: If the state is not the newest state.
        """
        corpus = check_engine(data)
        with self._locked():
            record, pools, plan, secret = self._completed()
            if record.night and night == record.night:
                # The rows are not compared with the rows of the first run, because the result would depend on private
                # rows.
                return _release(record, pools, plan, record.before)
            number = _next(record, plan, night)
            first, record.started = not record.started, True
            _check_columns(record, corpus)
            known = _listed_parts(record, plan, pools, corpus) if first else []
            pools = corpus.nights(pools, secret, first=first)
            if known:
                # The list is added before any noise is drawn, because every item of the list has noise from the first
                # night on.
                pools.recognise(known)
            record.before = record.night
            record = self._run_nights(record, pools, plan, secret, corpus, number)
            return _release(record, pools, plan, record.before)

    def remove(self, user: Any) -> Removed | None:
        """Delete the rows of a user from the state.

        The user's key remains, without a budget, so later rows of the same id are ignored. The names and the noisy
        scores of all items remain until the series ends, because the guarantee depends on them.

        Args:
            user: The id in the rows, as a whole number, a string, a date or another type that `voxpop.read` accepts for
                users. Pass a tuple if the rows have several user columns.

        Returns:
            The number of deleted items and the number of nights on which the user contributed them, or None if the
            state does not contain the user.

        Raises:
            InputError: If no user column can contain a value of this type.
        """
        key = key_of(user)
        with self._locked():
            record, pools, _, _ = self._completed()
            removed = pools.remove(key)
            if removed is not None:
                self._store.write(record, pools)
        return removed

    @property
    def plan(self) -> SeriesPlan:
        """The public numbers, which were fixed before the first night."""
        return SeriesPlan.from_dict(self._read()[0].plan)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all nights together."""
        record, _ = self._read()
        return replace(SeriesPlan.from_dict(record.plan).guarantee, private=record.private)

    @property
    def night(self) -> int:
        """The last complete night, or 0 before the first night."""
        return self._read()[0].night

    @property
    def released(self) -> pa.Table:
        """All released items, with the columns of `Release.to_arrow` and a column `night` for the night of release."""
        record, pools = self._read()
        release = _release(record, pools, SeriesPlan.from_dict(record.plan), 0)
        _, nights, _ = _sorted(pools, 0)
        return with_result(release.to_arrow(), "night", nights)

    @property
    def release(self) -> Release:
        """All released items as one release, which can be saved and exported."""
        record, pools = self._read()
        return _release(record, pools, SeriesPlan.from_dict(record.plan), 0)

    @property
    def counts(self) -> list[int]:
        """The number of items that were released on each night."""
        record, pools = self._read()
        found = Counter(pools.out(0)[1].tolist())
        return [found[night] for night in range(1, record.night + 1)]

    def report(self) -> Report:
        """Return the report of all released items."""
        return self.release.report()

    def _locked(self) -> AbstractContextManager[None]:
        self._store.require()
        return self._store.locked()

    def _read(self) -> tuple[Record, NightPools]:
        with self._locked():
            return self._store.read()

    def _completed(self) -> tuple[Record, NightPools, SeriesPlan, Secret]:
        """Return the state after completing an interrupted night."""
        record, pools = self._store.read()
        plan, secret = SeriesPlan.from_dict(record.plan), Secret(bytes.fromhex(record.secret), private=record.private)
        if record.begun:
            record = self._run_nights(record, pools, plan, secret)
        return record, pools, plan, secret

    def _run_nights(
        self,
        record: Record,
        pools: NightPools,
        plan: SeriesPlan,
        secret: Secret,
        corpus: Engine | None = None,
        last: int = 0,
    ) -> Record:
        """Run all nights up to the last night, which has rows. A night that has begun is completed from the state."""

        def schedule(record: Record) -> GateCall[NightsGate, Record] | None:
            number = record.begun or record.night + 1
            tonight = _tonight(plan, number)

            def stored(night: int, begun: int) -> Record:
                after = replace(record, night=night, begun=begun)
                self._store.write(after, pools)
                return after

            if record.begun:
                return GateCall(lambda gate: gate.complete(pools, number, *tonight), lambda _: stored(number, 0))
            if number < last:
                return GateCall(lambda gate: gate.missed(pools, number), lambda _: replace(record, night=number))
            if number > last:
                return None
            # The rows are on disk before any noise of this night is drawn, so the night never runs on other rows.
            return GateCall(
                lambda gate: gate.begin(pools, corpus, number, *tonight), lambda _: stored(record.night, number)
            )

        return run_passes(record, schedule, _gate(plan, secret), "nights")

    def __repr__(self) -> str:
        return f"Series({str(self.folder)!r}, private)"


def _tonight(plan: SeriesPlan, night: int) -> tuple[States, int]:
    """Return the function for the states of items, and the first night for resting items.

    A resting item still gets weight from a user if it joined the user's pool on or after this night.
    """
    return partial(states_of, plan, night=night), night - plan.tried + 1


def _gate(plan: SeriesPlan, secret: Secret) -> NightsGate:
    return NightsGate(plan.certificate.to_json(), secret)


def _next(record: Record, plan: SeriesPlan, night: int | None) -> int:
    nights, number = plan.mechanism.nights, record.night + 1 if night is None else night
    if record.night >= nights:
        raise ReleaseError(f"the series ended with night {nights}. Start another series, which is charged separately.")
    if isinstance(number, bool) or not isinstance(number, int) or not record.night < number <= nights:
        raise InputError(
            f"`night` must be from {record.night + 1} to {nights}, got {number!r}. Earlier nights have run, "
            "and only the last one can be repeated."
        )
    return number


def _check_columns(record: Record, corpus: Engine) -> None:
    """Raise an error if the rows differ in kind from the rows of earlier nights.

    The check depends only on public schemas. If a table declares no type for ids, none of its rows has a user.
    """
    mine, names = (corpus.token_source, corpus.keys.to_list()), list(corpus.families)
    families = list(corpus.families.values()) if all(corpus.families.values()) else []
    if families and record.user_columns not in ([], names):
        raise InputError(
            f"the user columns are {_listed(names)} on this night and {_listed(record.user_columns)} on earlier "
            "nights, so each user could have two budgets. All nights must have the same user columns in the same "
            "order. If only a name of a column has changed, rename the column while reading, such as SELECT login AS "
            'email in SQL or table.rename({"login": "email"}) in polars. If the ids have changed, start a new series.'
        )
    if families and record.families not in ([], families):
        raise InputError(
            f"the ids of users are {' and '.join(families)} on this night and {' and '.join(record.families)} on "
            "earlier nights, so each user would have two budgets. Ids must have one type on all nights. Convert them."
        )
    if families and record.families and mine != (record.token_source, record.keys):
        raise InputError(
            "the rows of every night must be read in the same way, with the same tokenizer, and with columns of the "
            "same names and types, even on nights without rows. Read them as on the first night, and give a table "
            "without rows its types."
        )
    if not record.families:
        record.families, (record.token_source, record.keys) = families, mine
    if families:
        record.user_columns = names


def _listed(names: list[str]) -> str:
    return ", ".join(names[:20])


def _listed_parts(record: Record, plan: SeriesPlan, pools: NightPools, corpus: Engine) -> list[pa.LargeStringArray]:
    """Return the public list in the form of the rows of the first night. The state contains the list as it was given.

    Raises:
        InputError: The list does not fit the columns of the items, or the columns have no types.
    """
    known = plan.mechanism.known
    if known is None:
        return []
    if not corpus.families or not all(corpus.families.values()):
        raise InputError(
            "the first night of a series with a public list must have columns with types, because the list is read "
            "like these columns. Give a table without rows its types."
        )
    begun: Any = pools  # a series begins in memory
    given = replace(known, items=begun.words, names=tuple(record.listed))
    return given.parts(corpus.kind, corpus.token_source, corpus.keys)


def _sorted(pools: NightPools, after: int) -> tuple[pa.LargeStringArray, Int64s, Bools]:
    """Return the result of `pools.out`, in the order of the bytes of the items."""
    words, nights, listed = pools.out(after)
    order = np.asarray(pc.sort_indices(words)).astype(np.int64)
    return words.take(int64_array(order)), nights[order], listed[order]


def _release(record: Record, pools: NightPools, plan: SeriesPlan, after: int) -> Release:
    guarantee = replace(plan.guarantee, private=record.private)
    keys = Keys.from_list(record.keys)
    words, _, listed = _sorted(pools, after)
    done, marks = with_record(plan, ran=record.night), None if plan.mechanism.known is None else listed
    release = Release.from_items(words, done, guarantee, record.token_source, keys, marks)
    if not record.ledger:
        return release
    path, name, number = record.ledger
    return release.with_ledger_entry(LedgerAccount(Path(path), name).entries[number - 1].admission)
