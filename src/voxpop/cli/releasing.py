"""The steps that every releasing command runs, in the one order in which a wrong call spends nothing."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from voxpop.cli.options import Charge, Result, Run, Table
from voxpop.errors import InputError

if TYPE_CHECKING:
    from voxpop.ledger.ledger import LedgerAccount

Target = TypeVar("Target")


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Print the duration of a stage on a terminal, and nothing elsewhere."""
    begun = perf_counter()
    yield
    if sys.stderr.isatty():
        sys.stderr.write(f"{name}: {perf_counter() - begun:.1f} s\n")


def released(
    check: Callable[[], Target],
    planned: Callable[[], Any],
    read: Callable[[], Any],
    run: Run,
    charge: Charge,
    *,
    reported: bool = True,
) -> tuple[Target, Any]:
    """Check the call, plan, check the ledger, read and release.

    Args:
        check: returns the target to save to, or raises.
        planned: returns the plan, or raises.
        read: returns the data.
        run: where the work runs.
        charge: the ledger that is charged before the release runs.
        reported: whether the report names the data set, so that it may be named without a ledger.

    Returns:
        The target and the released result.
    """
    run.check()
    target = check()
    plan = planned()
    account = account_of(charge, reported=reported)
    if account is not None:
        account.check(plan.guarantee)
    data = read()
    with stage("Releasing"):
        return target, plan.release(data, ledger=account, seed=charge.seed)


def reader(source: list[str], table: Table, run: Run) -> Callable[[], Any]:
    """Return a function that reads the table; the columns are checked at once."""
    columns = table.columns(source)
    reading = table.reading

    def read() -> Any:
        import voxpop as vp

        options = vp.ReadOptions(memory=run.memory, work_folder=run.work_folder, partitions=run.partitions)
        if run.engine == "local":
            with stage("Reading"):
                return vp.read(source, **columns, **reading, options=options)
        with stage("Starting Spark"):
            from voxpop.engine.spark.reading import open_frame
            from voxpop.engine.spark.session import start_session
            from voxpop.reading.wanted import Wanted

            session = start_session(run.master or "local[*]")
        with stage("Opening"):
            csv = reading.pop("csv", None)
            wanted = Wanted.of(**columns, order=reading.get("order"), types=reading.pop("types", None))
            dialect = (None, None) if csv is None else (csv.delimiter, csv.encoding)
            frame = open_frame(session, source, wanted, *dialect)
            return vp.read(frame, **columns, **reading, options=options)

    return read


def release_and_report(
    planned: Callable[[], Any],
    source: list[str],
    table: Table,
    charge: Charge,
    run: Run,
    result: Result,
    output: Path,
) -> None:
    """Release items or n-grams, save them and print a summary."""
    from voxpop.cli.output import print_release
    from voxpop.release.saving import check_target

    metadata = checked_metadata(result, charge)
    read = reader(source, table, run)
    folder, release = released(lambda: check_target(output, overwrite=result.overwrite), planned, read, run, charge)
    release = release.with_metadata(**metadata)
    release.save(folder, overwrite=result.overwrite)
    print_release(release, folder, as_json=result.json)


def checked_metadata(result: Result, charge: Charge) -> dict[str, str]:
    """Return the metadata of the report; raises before any work is done where it cannot be written."""
    from voxpop.release.result import About

    metadata = result.metadata(charge.dataset)
    About(**metadata)
    return metadata


def account_of(charge: Charge, *, reported: bool) -> "LedgerAccount | None":
    """Return the account of a call, or None.

    Raises:
        InputError: if only one of ledger and data set is given, or a seed as well.
    """
    if charge.ledger is None and (charge.dataset is None or reported):
        return None
    if charge.ledger is None:
        raise InputError("--dataset names an account of a ledger: add --ledger FILE.")
    if charge.dataset is None:
        raise InputError("--ledger needs the name of an account: add --dataset NAME.")
    if charge.seed is not None:
        raise InputError(
            "--seed makes a release that is not private, which a ledger cannot record. Leave out --seed or --ledger."
        )
    from voxpop.ledger.ledger import Ledger

    return Ledger(charge.ledger).account(charge.dataset)
