"""The commands show, complete, export, count, top and ask, which use a saved release or model."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

import voxpop as vp
from voxpop.cli import options as given
from voxpop.cli import releasing
from voxpop.errors import InputError, ReleaseError, on_one_line
from voxpop.mechanisms.counts.mechanism import CountsMechanism, TopMechanism
from voxpop.privacy.budget import all_printable, printable, words_first
from voxpop.release.saving import BESIDE, COUNTS, PROFILE, RANKINGS, RELEASE, ResultKind

if TYPE_CHECKING:
    import polars as pl

    from voxpop.release.result import Result

Symbols = Annotated[
    str,
    Parameter(
        help="Symbols separated by commas: the prefix, or the steps of a funnel. Quote a symbol that contains a comma."
    ),
]
Question = Literal["next", "paths", "funnel", "lengths", "starts", "ends", "transitions"]
Save = Annotated[bool, Parameter(negative="--no-save", help="Save the result in the folder of the release.")]
_FullCount = Annotated[
    int | None, Parameter(help="Number of words for which a user counts in full. Chosen privately by default.")
]
_KnownRows = Annotated[
    str | None,
    Parameter(
        help="Public items that are counted even if they were not released: a file of a list, or the folder of a "
        "release. It must not be made from the data."
    ),
]
Places = Annotated[int, Parameter(help="Number of grams.")]
_OutputFile = Annotated[Path, Parameter(name=["--output", "-o"], help="File to write.")]


UNVERIFIED = "Not verified. Run `voxpop verify` to check that these numbers follow from the settings."


def show(folder: given.ResultFolder, /, *, first: given.First = 20, json: given.Json = False) -> None:
    """Show a saved release or model with its guarantee and its plan.

    Example: `voxpop show words`
    """
    saved = vp.load(folder)
    title, rows, lines = first_of(saved, first)
    added = _additions(folder)
    counts, ranking = added.get(COUNTS), added.get(RANKINGS)
    if json:
        extra: dict[str, Any] = {} if counts is None else {"counts": _counted(counts, first)}
        if ranking is not None:
            grams = list(ranking.each_gram())
            extra["top"] = {**releasing.guarantee_record(ranking.guarantee), "grams": grams}
        releasing.print_json({**releasing.summary(saved, folder), "verified": False, "first": rows, **extra})
        return
    releasing.say(title, *(f"  {line}" for line in lines), releasing.guarantee_text(saved.guarantee))
    if counts is not None:
        releasing.say(f"\nNoisy numbers of users, with standard error {counts.error:.3g}, {counts.guarantee}")
        releasing.say(*_count_lines(counts, first))
    if ranking is not None:
        releasing.say(f"\nThe {len(ranking):,} grams with the most users, in order, {ranking.guarantee}")
        releasing.say(*islice(releasing.numbered_grams(ranking.each_gram()), first))
    if added or saved.total.charged:
        releasing.say(releasing.total_text(saved.total))
    releasing.say(f"\nPlan\n{releasing.indented(str(saved.plan))}")
    releasing.say(f"\n{UNVERIFIED}")


def _additions(folder: Path) -> dict[ResultKind, Any]:
    """Return the counts and the ranking in the folder of a release, by kind."""
    return {kind: kind.load(folder) for kind in BESIDE if kind.is_in(folder)}


def first_of(result: "Result", first: int) -> tuple[str, list[Any], list[str]]:
    """Return a title, the first rows for JSON and the first rows as lines of text."""
    if isinstance(result, vp.Profile):
        shown = list(islice(result.each_text(), first))
        lines = [
            f"{'' if result.error is None else f'{users:>12,}'}  {_columns(names)}: {printable(texts)}"
            for names, texts, users in shown
        ]
        first_rows: list[Any] = [[list(names), list(texts), users] for names, texts, users in shown]
        columns, values = releasing.plural(len(result.keys.columns), "column"), releasing.plural(len(result), "value")
        title = f"A profile of {columns}: {values}."
        return f"{title}{' Noisy numbers of users.' if result.error else ''}", first_rows, lines
    if isinstance(result, vp.Release):
        grams = words_first(result.each_gram())[:first]
        return releasing.count_text(result), [list(gram) for gram in grams], all_printable(grams)
    rows = result.to_polars().head(first).select("gram", "ends", "count").to_dicts()
    lines = [f"{row['count']:>12,}  {printable(row['gram'], marked=True)}{' .' if row['ends'] else ''}" for row in rows]
    title = f"A model of {releasing.plural(len(result), 'gram')} with noisy counts. A dot is the end of a sequence."
    return title, rows, lines


def _columns(names: Iterable[str]) -> str:
    return " x ".join(map(on_one_line, names))


def complete(
    folder: given.ResultFolder,
    prompt: Annotated[str, Parameter(name="TEXT", help="Beginning of a phrase. Its last word may be incomplete.")] = "",
    /,
    *,
    first: given.First = 10,
    json: given.Json = False,
) -> None:
    """Show how released phrases continue a text, beginning with the longest context. Saved counts determine the order.

    Example: `voxpop complete phrases "thank you for"`
    """
    release = RELEASE.load(folder)
    counts = COUNTS.load(folder) if COUNTS.is_in(folder) else None
    found = (counts or release).complete(prompt, first)
    if json:
        rows: list[dict[str, Any]] = [
            {"token": each.token, "context": list(each.context), "phrases": each.phrases} for each in found
        ]
        if counts is not None:
            rows = [{**row, "users": each.users} for row, each in zip(rows, found, strict=True)]
        releasing.print_json(
            {"prompt": prompt, "completions": rows, "statement": str((counts or release).total.adaptive)}
        )
        return
    lines = [f"  {text}" for text in all_printable(each.gram for each in found)]
    releasing.say(*(lines or ["No released phrase continues this text."]))


def explain(
    folder: given.ResultFolder,
    items: Annotated[
        list[str], Parameter(name="ITEM", help="Text of an item. Separate values of several columns with commas.")
    ],
    /,
    *,
    data: Annotated[
        list[str] | None,
        Parameter(help="Private data of the release, for the owner of the data. Adds a PRIVATE number of users."),
    ] = None,
    table: given.TableOptions = given.TableArguments(),
    run: given.RunOptions = given.RunArguments(),
    json: given.Json = False,
) -> None:
    """Explain why an item was released, or why it may be missing. Only the saved release and its plan are used.

    Example: `voxpop explain words Apt-Get`
    """
    if table != given.TableArguments() and data is None:
        raise InputError("Options for reading a table apply only to private data. Add --data FILE, or remove them.")
    release = RELEASE.load(folder)
    corpus = None if data is None else releasing.reader(data, table, run)()
    several = release.keys is not None and len(release.keys.columns) > 1
    values: list[Any] = [tuple(given.listed(each, "ITEM")) if several else each for each in items]
    found = [release.explain(value, corpus, exact=run.exact) for value in values]
    counts = _additions(folder).get(COUNTS)
    if json:
        rows = [{**each.to_dict(), **_its_count(counts, each)} for each in found]
        releasing.print_json({"explanations": rows, "statement": str(release.guarantee)})
        return
    for each in found:
        releasing.say(each)
        if counts is not None and (count := _its_count(counts, each)):
            releasing.say(f"  Noisy number of users, standard error {counts.error:.3g}: {count['count']:,}")


def _its_count(counts: Any, found: Any) -> dict[str, int]:
    """Return the released count of an explained item, or an empty dictionary if the item has no count."""
    return {} if counts is None or not found.released else {"count": counts.of_gram(found.tokens)}


def resume(kept: given.ResultFolder, /, *, output: given.Output, overwrite: given.Overwrite = False) -> None:
    """Save a result that an earlier command could not save.

    The message of that command names the folder with the result.

    Example: `voxpop resume ~/.voxpop/voxpop-kept-0123/words -o words`
    """
    from voxpop.ledger.runs import publish

    publish(kept, output, overwrite=overwrite)
    releasing.say(f"Saved to {output}")


Digest = Annotated[str | None, Parameter(help="The digest that was signed or recorded. Another digest is an error.")]
Signature = Annotated[Path | None, Parameter(help="File of a signature by `voxpop sign`, to check.")]
Signers = Annotated[Path | None, Parameter(help="File with an identity and a public key in each line; see ssh-keygen.")]
Identity = Annotated[str | None, Parameter(help="The identity that must have signed, such as ann@example.org.")]


def signed_by(path: Path, signature: Path | None, signers: Path | None, identity: str | None) -> str | None:
    """Check a signature if one is given, and return the identity of the signer.

    Raises:
        InputError: If only some of the options are given.
        ReleaseError: If the identity did not sign these contents.
    """
    from voxpop.release.verifying import check_signature

    if signature is None and signers is None and identity is None:
        return None
    if signature is None or signers is None or identity is None:
        raise InputError(
            "A signature needs --signature FILE, --signers FILE and --identity NAME. Give all of them or none."
        )
    check_signature(path, signature, signers, identity)
    return identity


def verify(
    folder: given.ResultFolder,
    /,
    *,
    digest: Digest = None,
    signature: Signature = None,
    signers: Signers = None,
    identity: Identity = None,
    json: given.Json = False,
) -> None:
    """Check that a saved folder is unchanged, and that its settings reproduce its plan, guarantee and report.

    Example: `voxpop verify words --signature words.sig --signers signers --identity ann@example.org`
    """
    from voxpop.release.verifying import verify as verified

    found = verified(folder)
    if digest is not None and digest != found["digest"]:
        raise ReleaseError(
            f"{folder}: the digest of SHA256SUMS is {found['digest']}, and another digest was signed. Use the folder "
            "that was signed."
        )
    if signed_by(folder, signature, signers, identity):
        found["signed_by"] = identity
    total = vp.load(folder).total
    found["independent"] = _checked(folder)
    if json:
        releasing.print_json({**found, "total": total.to_dict()})
        return
    releasing.say(
        f"{releasing.plural(len(found['files']), 'file')} as saved: {', '.join(map(on_one_line, found['files']))}"
    )
    for each in found["results"]:
        releasing.say(
            f"{each['mechanism']}: planned again with the same settings, all numbers agree: {each['statement']}"
        )
    if len(found["results"]) > 1 or total.charged:
        releasing.say(releasing.total_text(total).strip())
    releasing.say("report.html: generated again from the result, no difference")
    ran = "not run, because voxpop-check is not installed"
    releasing.say(f"independent check of the certificates: {found['independent'] or ran}")
    if identity is not None:
        releasing.say(f"Signed by {identity}")
    releasing.say(f"Digest of SHA256SUMS: {found['digest']}")


def _checked(folder: Path) -> str | None:
    """Return the result of `voxpop-check` for the certificates of a folder, or None if the checker is not installed.

    Raises:
        ReleaseError: If `voxpop-check` does not prove the certificates.
    """
    try:
        check = import_module("voxpop_check.__main__").main
    except ModuleNotFoundError:
        return None
    said = StringIO()
    with redirect_stdout(said):
        code = check([str(folder)])
    if code != 0:
        # The output (terms or a reason) contains only numbers of the certificate.
        raise ReleaseError(
            f"{folder}: voxpop-check does not prove the certificates. Do not use this release.\n{said.getvalue()}"
        )
    return "proved by voxpop-check"


def export(
    folder: given.ResultFolder,
    /,
    *,
    output: _OutputFile,
    format: Annotated[str | None, Parameter(help="Format. By default the suffix of the file determines it.")] = None,
    tokenizer: Annotated[str, Parameter(help="Tokenizer for the texts that the other software will read.")] = "words",
    of: Annotated[
        Literal["release", "counts", "top"] | None,
        Parameter(help="Result in the folder. By default, tables contain its counts if there are any."),
    ] = None,
    dialect: Annotated[str, Parameter(help="Dialect of SQL: duckdb, postgres, bigquery, snowflake, ...")] = "duckdb",
    size: Annotated[int, Parameter(help="Maximum number of subwords of bpe, wordpiece and unigram.")] = 8000,
    overwrite: given.Overwrite = False,
) -> None:
    """Write a saved release as one file for other software.

    The formats frequencies, bpe, wordpiece and unigram use the counts in the folder of the release. The table formats
    csv, arrow, parquet and sql have the column `users` if the folder has counts, unless --of release is given.

    Example: `voxpop export words -o words.txt`
    """
    from voxpop.exports.files import export_for, write

    chosen = export_for(output, format)
    if of is not None:
        kind = {"release": RELEASE, "counts": COUNTS, "top": RANKINGS}[of]
    else:
        kind = COUNTS if chosen.counted or (chosen.table and COUNTS.is_in(folder)) else RELEASE
    general = of is None and (chosen.general or PROFILE.is_in(folder))
    result: Any = vp.load(folder) if general else kind.load(folder)
    cut = given.tokenizer_of(tokenizer)
    write(result, output, chosen.name, tokenizer=cut, dialect=dialect, size=size, overwrite=overwrite)
    column = {COUNTS: " with noisy numbers of users", RANKINGS: " with their places"}
    what = f"{releasing.plural(len(result), 'gram')}{column.get(kind, '') if chosen.table else ''}"
    releasing.say(f"Wrote {chosen.name if chosen.general else what} to {output}")


def count(
    folder: given.ResultFolder,
    source: given.Sources = None,
    /,
    *,
    counted_in_full: _FullCount = None,
    known: _KnownRows = None,
    first: given.First = 20,
    save: Save = True,
    overwrite: given.Overwrite = False,
    json: given.Json = False,
    call: given.CallOptions = given.Call(),
) -> None:
    """Count, with noise, the users of each gram of a saved release.

    Counts need a budget in addition to that of the release.

    Example: `voxpop count words posts.parquet --user author --text body --epsilon 1 --delta 1e-8`
    """
    kept, addition = folder if save else None, CountsMechanism(counted_in_full, known)
    counts = _add(COUNTS, addition, folder, kept, source, call, overwrite=overwrite)
    title = f"Counted {releasing.plural(len(counts), 'gram')}, standard error {counts.error:.3g} users."
    content = {"counted": len(counts), **_counted(counts, first)}
    _print_added(counts, kept, content, [title, *_count_lines(counts, first)], as_json=json)


def top(
    folder: given.ResultFolder,
    source: given.Sources = None,
    /,
    *,
    k: Places = TopMechanism().k,
    save: Save = True,
    overwrite: given.Overwrite = False,
    json: given.Json = False,
    call: given.CallOptions = given.Call(),
) -> None:
    """Release, with noise, the most frequent grams of a saved release, in descending order of their numbers of users.

    The order needs a budget in addition to that of the release.

    Example: `voxpop top words posts.parquet --user author --text body --k 20 --epsilon 1 --delta 1e-8`
    """
    kept = folder if save else None
    ranking = _add(RANKINGS, TopMechanism(k), folder, kept, source, call, overwrite=overwrite)
    grams = list(ranking.each_gram())
    _print_added(ranking, kept, {"grams": grams}, releasing.numbered_grams(grams), as_json=json)


def show_count_plan(
    folder: given.ResultFolder,
    /,
    *,
    counted_in_full: _FullCount = None,
    known: _KnownRows = None,
    spend: given.SpendOptions = given.SpendArguments(),
    json: given.Json = False,
) -> Any:
    """Show the guarantee and the noise of `voxpop count`. Reads only the saved release."""
    plan = CountsMechanism(counted_in_full, known).plan(spend.budget, RELEASE.load(folder))
    return releasing.print_plan(plan, as_json=json)


def show_top_plan(
    folder: given.ResultFolder,
    /,
    *,
    k: Places = TopMechanism().k,
    spend: given.SpendOptions = given.SpendArguments(),
    json: given.Json = False,
) -> Any:
    """Show the guarantee and the noise of `voxpop top`. Reads only the saved release."""
    return releasing.print_plan(TopMechanism(k).plan(spend.budget, RELEASE.load(folder)), as_json=json)


def ask(
    folder: given.ResultFolder,
    question: Annotated[Question, Parameter(name="QUESTION", help="The question.")],
    /,
    *,
    symbols: Symbols = "",
    length: Annotated[int, Parameter(help="Length of the paths.")] = 3,
    within: Annotated[int | None, Parameter(help="Limit of symbols from one step of a funnel to the next.")] = None,
    level: Annotated[float, Parameter(help="Nominal coverage of the intervals.")] = 0.9,
    first: given.First = 20,
    json: given.Json = False,
) -> None:
    """Query a model that `voxpop sequences` saved. Queries cost no budget.

    Example: `voxpop ask model funnel --symbols home,basket,paid --within 3`
    """
    model = vp.load(folder, vp.SequenceModel)
    named = given.listed(symbols, "--symbols")
    if named and question not in ("next", "funnel"):
        raise InputError(f"--symbols is an option of `next` and `funnel`, not of `{question}`. Remove it.")
    queries: dict[str, Callable[[], pl.DataFrame]] = {
        "next": lambda: model.next(named, level).rename({"probability": "share"}),
        "paths": lambda: model.paths(length, first, level),
        "funnel": lambda: model.funnel(named, within, level),
        "lengths": lambda: model.lengths(level),
        "starts": lambda: model.starting(level),
        "ends": lambda: model.ending(level),
        "transitions": lambda: model.transitions(level),
    }
    frame = queries[question]()
    if json:
        releasing.print_json({"question": question, "level": level, "answer": frame.to_dicts()})
        return
    releasing.say(*(_answer_line(row) for row in frame.head(first).iter_rows(named=True)))


def _answer_line(row: dict[str, Any]) -> str:
    share, _, low, high = (f"{float(row.pop(name)):.4f}" for name in ("share", "error", "low", "high"))
    names = []
    for value in row.values():
        symbols = value if isinstance(value, list) else ["(end)" if value is None else str(value)]
        names.append(printable(tuple(symbols)))
    return f"{share:>8}   ({low} to {high})   {' -> '.join(names)}"


def _add(
    kind: ResultKind,
    addition: CountsMechanism | TopMechanism,
    folder: Path,
    kept: Path | None,
    source: list[str] | None,
    call: given.Call,
    *,
    overwrite: bool,
) -> Any:
    """Release counts or a ranking of the release in `folder`, and save the result there if `kept` is this folder."""
    from voxpop.ledger.runs import save_new

    read, beside = releasing.reader(source, call.table, call.run), partial(save_new, folder=folder, overwrite=overwrite)

    def plan() -> Any:
        return addition.plan(call.spend.budget, RELEASE.load(folder))

    return releasing.released_addition(kind, kept, plan, read, call.charge, beside, overwrite=overwrite, reported=False)


def _count_lines(counts: Any, first: int) -> Iterator[str]:
    rows = list(islice(counts.each_gram(), first))
    texts = all_printable(gram for gram, _ in rows)
    return (f"  {users:>12,}  {text}" for text, (_, users) in zip(texts, rows, strict=True))


def _counted(counts: Any, first: int) -> dict[str, Any]:
    rows = [{"gram": list(gram), "users": users} for gram, users in islice(counts.each_gram(), first)]
    return {**releasing.guarantee_record(counts.guarantee), "error": counts.error, "first": rows}


def _print_added(
    addition: Any, folder: Path | None, content: dict[str, Any], lines: list[str], *, as_json: bool
) -> None:
    """Print counts or a ranking as text or as one JSON object, with the total guarantee including the release."""
    if as_json:
        releasing.print_json({**content, **releasing.shared_fields(addition, folder)})
        return
    releasing.say(*lines, releasing.guarantee_text(addition.guarantee), releasing.total_text(addition.total))
    if folder is not None:
        releasing.say(f"{releasing.again()}\nSaved to {folder}")
