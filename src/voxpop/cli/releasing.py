"""The steps that all releasing commands share. The steps are ordered so that an invalid call spends no budget.

Results are printed as text for people or as JSON for machines. Both forms depend only on the results.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill, indent
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import voxpop as vp
from voxpop.cli.options import Call, ChargeArguments, ResultArguments, RunArguments, TableArguments
from voxpop.errors import BudgetError, InputError, shown
from voxpop.files.progress import note, noted, rounded, tell
from voxpop.privacy.budget import Budget, all_printable, words_first
from voxpop.privacy.guarantee import Guarantee, cautions, meaning
from voxpop.privacy.planned import USUAL_ITEMS
from voxpop.reading.hidden import SKIPPED_NAMES, is_hidden
from voxpop.release.saving import ResultKind

if TYPE_CHECKING:
    from voxpop.ledger.ledger import LedgerAccount
    from voxpop.privacy.composition import Total
    from voxpop.release.release import Release
    from voxpop.release.result import Result as AnyResult


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Print the duration of a stage if the output is a terminal."""
    begun = perf_counter()
    yield
    if sys.stderr.isatty():
        sys.stderr.write(f"{name}: {perf_counter() - begun:.1f} s\n")


def released_addition(
    kind: ResultKind,
    folder: Path | None,
    planned: Callable[[], Any],
    read: Callable[[], Any],
    charge: ChargeArguments,
    save: Callable[[Any, Path], None],
    *,
    overwrite: bool,
    reported: bool = True,
) -> Any:
    """Check the output and the ledger, and then plan, read, release and save.

    Args:
        kind: The kind of result.
        folder: The output folder. Without a folder, the result is only printed.
        planned: A function that returns the plan.
        read: A function that returns the data.
        charge: The ledger that is charged before the release runs.
        save: A function that writes a result to a new folder.
        overwrite: Whether to replace another result in the folder.
        reported: Whether the report names the data set. If the report names the data set, the call may name a data set
            without a ledger.

    Returns:
        The result. If the run has already finished, the saved result is returned.
    """
    from voxpop.ledger.runs import LedgerRun, check_output, keep, publish

    account, label = account_of(charge, reported=reported), charge.run_id or ""

    def stamped(made: Any, new: Path) -> None:
        save(made if charge.job is None else made.with_job(charge.job), new)

    run = None if account is None else LedgerRun(account, label, folder, overwrite, stamped)
    if run is not None and run.finished:
        run.save_finished()
        if folder is not None and kind.is_in(folder):
            found = kind.load(folder)
            entry = run.account.entry(label)
            if entry is not None and found.metadata.ledger == entry.admission:
                note("repeated", run=label, same_job=found.metadata.job == (charge.job or ""))
                return found
    plan = planned()
    mechanism = str(plan.to_dict()["mechanism"])
    note("planned", mechanism=mechanism, guarantee=str(plan.guarantee))
    if folder is not None and not (run is not None and run.finished):
        check_output(folder, mechanism, overwrite=overwrite)
    if account is not None:
        account.check(plan.guarantee, mechanism, label)
    data = read()
    note("read")
    with stage("Releasing"):
        result = plan.release(data, ledger=run, seed=charge.seed)
    if run is None and folder is not None:
        note("released")
        kept = keep(lambda new: stamped(result, new), folder, uuid4().hex)
        note("kept", folder=str(kept))
        publish(kept, folder, overwrite=overwrite)
    note("saved", folder=None if folder is None else str(folder))
    return result if charge.job is None else result.with_job(charge.job)


OTHER_JOB = (
    "Another job, or a command without a job, made this result. The settings of this job did not run.\n"
    "To run them, choose another run_id, which is charged."
)


def repetition() -> dict[str, bool]:
    """Return the JSON fields of a repeated run, which show whether the same job made the result."""
    return {"repeated": True, "same_job": noted()["repeated"]["same_job"]} if repeated() else {}


def repeated() -> bool:
    """Return whether this command showed the result of an earlier run."""
    return "repeated" in noted()


def again() -> str:
    """Return a line for a command that showed the result of an earlier run, or an empty string."""
    if not repeated():
        return ""
    text = "\nThis run had already finished, so no row was read and nothing was charged."
    return text if noted()["repeated"]["same_job"] else f"{text}\n{OTHER_JOB}"


def released_to(
    kind: ResultKind,
    output: Path,
    planned: Callable[[], Any],
    source: list[str] | None,
    call: Call,
    result: ResultArguments,
    save: Callable[[Any, Path], None] = lambda made, folder: made.save(folder),
    read: Callable[[], Any] | None = None,
) -> Any:
    """Check the call, plan, read and release, and return the result after saving it with metadata."""
    metadata = result.metadata(call.charge.dataset)

    def described(made: Any, folder: Path) -> None:
        save(made.with_metadata(**metadata), folder)

    read = read or reader(source, call.table, call.run)
    made = released_addition(kind, output, planned, read, call.charge, described, overwrite=result.overwrite)
    return made.with_metadata(**metadata)


def reader(source: list[str] | None, table: TableArguments, run: RunArguments) -> Callable[[], Any]:
    """Check the options, and return a function that reads the table."""
    run.check()
    columns = table.columns(source)
    reading = table.reading

    def read() -> Any:
        found = opened_source(table.source(source), run)
        with stage("Reading"):
            return vp.read(found, **columns, **reading, options=read_options(run))

    return read


def read_options(run: RunArguments) -> Any:
    """Return the options for reading."""
    return vp.ReadOptions(
        memory=run.memory,
        work_folder=run.work_folder,
        partitions=run.partitions,
        exact=run.exact,
        missing_users="drop" if run.drop_missing_users else "error",
    )


def opened_source(source: Any, run: RunArguments) -> Any:
    """Return the source for `voxpop.read`.

    The source is the paths, the query, or a Spark table with the rows of the files.
    """
    if run.engine == "local":
        return _without_hidden(source) if isinstance(source, list) else source
    if not isinstance(source, list):
        raise InputError("--sql runs the query on this machine, not on Spark. Remove --engine spark, or give files.")
    with stage("Starting Spark"):
        from voxpop.engine.spark.reading import open_frame
        from voxpop.engine.spark.session import start_session

        session = start_session(run.master or "local[*]")
    with stage("Opening"):
        return open_frame(session, source)


def _without_hidden(source: list[str]) -> list[str]:
    """Return the paths without hidden and temporary names, which `vp.read` skips but a shell may include."""
    seen = [path for path in source if not is_hidden(Path(path).name)]
    if not seen or len(seen) == len(source):
        return source
    tell(f"{rounded(len(source) - len(seen))} of the paths {SKIPPED_NAMES}", None)
    return seen


def account_of(charge: ChargeArguments, *, reported: bool) -> "LedgerAccount | None":
    """Return the account of a call, or None without a ledger.

    Raises:
        InputError: If a ledger is given without a data set or vice versa, or both are given with a seed.
    """
    if charge.ledger is None and charge.run_id is not None:
        raise InputError("--run-id names an entry of a ledger. Add --ledger FILE and --dataset NAME.")
    if charge.ledger is None and (charge.dataset is None or reported):
        return None
    if charge.ledger is None:
        raise InputError("--dataset names an account of a ledger. Add --ledger FILE.")
    if charge.dataset is None:
        raise InputError("--ledger needs the name of an account. Add --dataset NAME.")
    if charge.seed is not None:
        raise InputError(
            "--seed makes a release that is not private, which a ledger cannot record. Remove --seed or --ledger."
        )

    return vp.Ledger(charge.ledger).account(charge.dataset)


SAMPLE = 20
WIDTH = 96


def say(*texts: Any) -> None:
    """Print each text on a separate line, with escapes for terminal control characters."""
    print(*(shown(str(text)) for text in texts), sep="\n")


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object on one line of ASCII."""
    print(json.dumps(content, allow_nan=False).replace("\x7f", "\\u007f"))


def print_result(
    result: Any, folder: Path, lines: Iterable[str], *, as_json: bool, total: "Total | None" = None, **more: Any
) -> None:
    """Print a summary of a saved result as text, or as one JSON object.

    Args:
        result: The result.
        folder: The folder of the result.
        lines: The first lines of the text.
        as_json: Whether to print JSON.
        total: The total to print, by default that of the result.
        more: Further fields of the JSON object.
    """
    if as_json:
        print_json({**summary(result, folder, total), **more})
    else:
        say(*lines, guarantee_text(result.guarantee), saved(folder, result, total))


def print_plan(plan: Any, *, as_json: bool) -> Any:
    """Print a plan as text, or as one JSON object with its guarantee, and return it."""
    if as_json:
        print_json({**guarantee_record(plan.guarantee), "plan": plan.to_dict()})
    else:
        say(plan)
    return plan


def lines_of_release(release: "Release") -> Iterator[str]:
    """Yield the number of grams and a sample of them, or the required number of users if nothing was released."""
    yield f"{count_text(release)}{' Some of them:' if len(release) > SAMPLE else ''}"
    grams = fill(", ".join(sample(release)), WIDTH, break_long_words=False, break_on_hyphens=False)
    yield indented(grams) if len(release) else nothing_released(release.plan)


def place(folder: Path) -> str:
    """Return a line with the folder of a saved result."""
    return f"\nSaved to {folder}. The report is report.html in this folder."


def saved(folder: Path, result: "AnyResult", total: "Total | None" = None) -> str:
    """Return lines with the folder of a result, its job, its ledger entry, and its total if there is one."""
    about = result.metadata
    total = result.total if total is None and about.ledger is not None else total
    stated = "" if total is None else total_text(total)
    where = f"{stated}{again()}{place(folder)}"
    where += f" Job: {about.job}." if about.job else ""
    if about.ledger is not None:
        return f"{where} Ledger: {about.ledger}."
    return f"{where} No ledger was charged. To charge one, add --ledger FILE." if about.dataset else where


def summary(result: Any, folder: Path, total: "Total | None" = None) -> dict[str, Any]:
    """Return the JSON summary of a saved release or model."""
    return {"released": len(result), **shared_fields(result, folder, total)}


def shared_fields(result: Any, folder: Path | None, total: "Total | None" = None) -> dict[str, Any]:
    """Return the JSON fields that all results have."""
    return {
        **guarantee_record(result.guarantee),
        "total": (result.total if total is None else total).to_dict(),
        "plan": result.plan.to_dict(),
        "folder": None if folder is None else str(folder.resolve()),
        **repetition(),
    }


def guarantee_record(guarantee: Guarantee) -> dict[str, Any]:
    """Return a guarantee as a sentence and as numbers."""
    return {"statement": str(guarantee), "guarantee": guarantee.to_dict()}


def count_text(release: "Release") -> str:
    """Return the number of grams, and their maximum length unless all grams have length 1."""
    number = len(release)
    longest = release.grams["length"][number - 1].as_py() if number else 1
    if longest == 1:
        return f"Released {plural(number, 'item')}."
    return f"Released {plural(number, 'gram')} of up to {longest} tokens."


def plural(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sample(release: "Release") -> list[str]:
    """Return up to 20 grams, evenly spaced in canonical order, starting with grams that begin with a letter."""
    words = [gram for gram in release.each_gram() if gram[0][:1].isalpha()]
    chosen = words_first(release.each_gram()) if len(words) < SAMPLE else words
    number = len(chosen)
    places = range(number) if number <= SAMPLE else [number * place // SAMPLE for place in range(SAMPLE)]
    return all_printable(chosen[place] for place in places)


def nothing_released(plan: Any) -> str:
    """Return the number of users that an item would have needed, which depends only on the plan."""
    nothing = "No item had enough users. The budget is spent nonetheless."
    if not hasattr(plan, "budget"):  # The run has finished, so this is its stored plan.
        return nothing
    needed = "\n".join(filter(None, (_needed_at(plan, times) for times in (1, 2, 4))))
    return (
        f"{nothing} At this delta, an item is released with\n"
        f"probability 0.9 if it has\n{indented(needed)}\n"
        f"(for users with {USUAL_ITEMS} items each, all equally rare). More users or a larger epsilon release more.\n"
        "If you expect items with this number of users, check the column and the tokenizer. Round prices and "
        "timestamps first."
    )


def _needed_at(plan: Any, times: int) -> str:
    """Return the required number of users at a multiple of the plan's epsilon, or an empty string if no plan exists."""
    epsilon = plan.budget.epsilon * times
    try:
        other = plan if times == 1 else plan.mechanism.plan(Budget(epsilon, plan.budget.delta))
        users = other.users_needed(0.9, **({"per_user": USUAL_ITEMS} if other.counts_items else {}))
    except BudgetError:
        return ""
    return f"epsilon {epsilon:g}: {'more than 10^12' if users is None else f'{users:,}'} users"


def total_text(total: "Total") -> str:
    """Return a text with the totals of results about the same users."""
    covers = "\n  the budget of the ledger, for all releases that are charged to it," if total.charged else ""
    texts = [
        f"\nAll results together, if they are from the same users: {total.adaptive},{covers}",
        "  even if each budget was chosen after earlier results;",
        f"  {total.if_fixed}.",
        *([indented(fill(total.reason, WIDTH))] if total.reason else []),
    ]
    return "\n".join(texts)


def guarantee_text(guarantee: Guarantee, user: str = "user") -> str:
    """Return a guarantee with an explanation of its meaning."""
    warned = [indented(fill(f"Caution: {each}", WIDTH)) for each in cautions(guarantee)]
    return "\n".join([f"\nGuarantee: {guarantee}", indented(fill(meaning(guarantee, user), WIDTH)), *warned])


def numbered_grams(grams: Iterable[Sequence[str]]) -> list[str]:
    """Return the grams in their order, one per line."""
    return [f"{place:>6,}  {text}" for place, text in enumerate(all_printable(grams), start=1)]


def indented(text: str) -> str:
    """Indent a text by two spaces."""
    return indent(text, "  ")
