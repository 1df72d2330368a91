"""What every command that releases does, in the one order that spends nothing on a wrong call."""

from collections.abc import Callable
from pathlib import Path
from typing import Any


def release_and_report(
    planned: Callable[[], Any],
    source: list[str],
    output: Path,
    user: str | None,
    contents: dict[str, str | None],
    *,
    tokenizer: str,
    seed: int | None,
    json: bool,
    ledger: Path | None = None,
    dataset: str | None = None,
    engine: str = "local",
    master: str | None = None,
    overwrite: bool = False,
    **reading: Any,
) -> None:
    """Check, plan, read, release, save and report.

    All that can be wrong with the call comes before the data, and the data before the budget is spent.

    Args:
        planned: returns the plan, or refuses.
        source: files, folders or patterns.
        output: folder to save to.
        user: column of users.
        contents: column of contents, by kind; one of them is given.
        tokenizer: how to cut text.
        seed: for tests.
        json: print one JSON object instead of words.
        ledger: a ledger to charge before the release runs.
        dataset: its data set.
        engine: where to run.
        master: the address of Spark.
        overwrite: replace a release that is there.
        reading: further arguments of `voxpop.read`.
    """
    from voxpop.cli.columns import chosen_columns, tokenizer_of
    from voxpop.cli.engines import check_engine, read_with
    from voxpop.cli.ledger import account_of, run
    from voxpop.cli.report import report
    from voxpop.cli.stages import stage
    from voxpop.release.saving import check_target

    check_engine(engine, master)
    folder = check_target(output, overwrite=overwrite)
    plan = planned()
    account = account_of(ledger, dataset, seed)
    if account is not None:
        account.check(plan.guarantee)
    columns = chosen_columns(source, user, **contents)
    cut = tokenizer_of(tokenizer)
    corpus = read_with(engine, master, source, columns, tokenizer=cut, **reading)
    with stage("Releasing"):
        release = run(plan, corpus, seed, account)
    release.save(folder, overwrite=overwrite)
    report(release, folder, as_json=json)
