"""What every command that releases does, in the one order that spends nothing on a wrong call."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from voxpop.cli.bundles import Charge, Place, Question, Result, Where

if TYPE_CHECKING:
    from voxpop.release.additions import AdditionFiles

Target = TypeVar("Target")


def released(
    check: Callable[[], Target],
    planned: Callable[[], Any],
    where: Where,
    columns: Any,
    charge: Charge,
    place: Place,
    stage_name: str = "Releasing",
    *,
    reported: bool = False,
    **reading: Any,
) -> tuple[Target, Any]:
    """Check, plan, read and release.

    All that can be wrong with the call comes before the data, and the data before the budget is spent.

    Args:
        check: returns where to save to, or refuses.
        planned: returns the plan, or refuses.
        where: what is read.
        columns: the column of contents, by kind; one of them is given.
        charge: the ledger to charge before the release runs.
        place: where to run.
        stage_name: what the work is called meanwhile.
        reported: whether a report names the data set.
        reading: further arguments of `voxpop.read`.

    Returns:
        What `check` returned, and what was released.
    """
    from voxpop.cli.engines import check_engine

    check_engine(place.engine, place.master, place.partitions)

    def read() -> Any:
        return ready_to_read(where, columns, place, **reading)()

    return charged(check, planned, read, charge, stage_name, reported=reported)


def charged(
    check: Callable[[], Target],
    planned: Callable[[], Any],
    read: Callable[[], Any],
    charge: Charge,
    stage_name: str,
    *,
    reported: bool,
) -> tuple[Target, Any]:
    """Check, plan, see that the ledger has enough left, read, and release; see `released`.

    Args:
        check: returns where to save to, or refuses.
        planned: returns the plan, or refuses.
        read: returns what the plan takes.
        charge: the ledger to charge before the release runs.
        stage_name: what the work is called meanwhile.
        reported: whether a report names the data set.
    """
    from voxpop.cli.ledger import account_of, run
    from voxpop.cli.stages import stage

    target = check()
    plan = planned()
    account = account_of(charge.ledger, charge.dataset, charge.seed, reported=reported)
    if account is not None:
        account.check(plan.guarantee)
    corpus = read()
    with stage(stage_name):
        return target, run(plan, corpus, charge.seed, account)


def ready_to_read(where: Where, columns: Any, place: Place, **reading: Any) -> Callable[[], Any]:
    """Return what reads a source when it is called; a column that no call names is missed before."""
    from voxpop.cli.columns import chosen_columns, tokenizer_of
    from voxpop.cli.engines import read_with

    chosen = chosen_columns(where.source, where.user, **vars(columns))
    cut = tokenizer_of(where.tokenizer)
    how = {"tokenizer": cut, "partitions": place.partitions, **where.reading, **reading}
    return lambda: read_with(place.engine, place.master, where.source, chosen, **how)


def release_addition(
    kind: "AdditionFiles",
    options: Any,
    question: Question,
    stage_name: str,
    *,
    save: bool,
    overwrite: bool,
) -> tuple[Path | None, Any]:
    """Release what says more about the grams of a saved release, and save it beside them; see `released`.

    Args:
        kind: of what is saved there.
        options: which release, and how to plan.
        question: what is read, the budget, the ledger to charge, and where to run.
        stage_name: what the work is called meanwhile.
        save: whether it is saved at all.
        overwrite: whether it may replace what is there.

    Returns:
        The folder that it was saved to, if any, and what was released.
    """
    budget = question.spend.budget
    folder, found = released(
        lambda: kind.check_target(options.folder, overwrite=overwrite) if save else None,
        lambda: options.planned(budget),
        question.where,
        question.columns,
        question.charge,
        question.place,
        stage_name,
    )
    if folder is not None:
        found.save(folder, overwrite=overwrite)
    return (options.folder if save else None), found


def release_and_report(
    planned: Callable[[], Any],
    where: Where,
    columns: Any,
    charge: Charge,
    place: Place,
    result: Result,
    **reading: Any,
) -> None:
    """Release grams, save and report them; see `released`."""
    from voxpop.cli.report import report
    from voxpop.release.saving import check_target

    result.check_said(charge.dataset)
    folder, release = released(
        lambda: check_target(result.output, overwrite=result.overwrite),
        planned,
        where,
        columns,
        charge,
        place,
        reported=True,
        **reading,
    )
    release = release.saying(result.said(charge.dataset))
    release.save(folder, overwrite=result.overwrite)
    report(release, folder, as_json=result.json)
