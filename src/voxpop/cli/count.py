"""`voxpop count`: about how many users hold each released gram."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voxpop.cli.options import (
    Dataset,
    Delta,
    Epsilon,
    Items,
    Json,
    LedgerFile,
    Order,
    Overwrite,
    Saved,
    Seed,
    Sequence,
    Session,
    Sources,
    Text,
    Tokenizer,
    Tokens,
    User,
    budget_of,
    numbers_of,
    paused,
)

if TYPE_CHECKING:
    from voxpop.release.tally import Tally

FullFor = Annotated[
    str,
    typer.Option(
        "--limit", help="Grams for which a user counts in full: a number (halved from length to length), or a list."
    ),
]
Save = Annotated[bool, typer.Option("--save/--no-save", help="Save the counts beside the release.")]
First = Annotated[int, typer.Option(min=0, help="How many grams to show, most users first.")]


def count(
    folder: Saved,
    source: Sources,
    user: User = None,
    text: Text = None,
    tokens: Tokens = None,
    items: Items = None,
    sequence: Sequence = None,
    order: Order = None,
    session: Session = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    limit: FullFor = "100",
    first: First = 20,
    save: Save = True,
    tokenizer: Tokenizer = "words",
    ledger: LedgerFile = None,
    dataset: Dataset = None,
    overwrite: Overwrite = False,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Count, with noise, how many users hold each gram of a saved release.

    Counts need a budget of their own, on top of what the release has spent.

    voxpop count words posts.parquet --user author --text body --epsilon 1 --delta 1e-8
    """
    from voxpop.cli.columns import chosen_columns, tokenizer_of
    from voxpop.cli.ledger import account_of, run
    from voxpop.cli.stages import stage
    from voxpop.counts.counts import Counts
    from voxpop.release.loading import load_release
    from voxpop.release.tally_files import check_counts_target

    # All that can be wrong with the call comes before the data, and the data before the budget is spent.
    budget = budget_of(epsilon, delta)
    limits = numbers_of("--limit", limit, int)
    release = load_release(folder)
    plan = Counts(limits[0] if len(limits) == 1 else limits).plan(budget, release)
    if save:
        check_counts_target(folder, overwrite=overwrite)
    account = account_of(ledger, dataset, seed)
    if account is not None:
        account.check(plan.guarantee)
    columns = chosen_columns(source, user, text=text, tokens=tokens, items=items, sequence=sequence)
    cut = tokenizer_of(tokenizer)
    with stage("Reading"):
        from voxpop.corpus.read import read

        corpus = read(source, tokenizer=cut, order=order, session=paused(session), **columns)
    with stage("Counting"):
        tally = run(plan, corpus, seed, account)
    if save:
        tally.save(folder, overwrite=overwrite)
    _report(tally, folder if save else None, first, as_json=json)


def _report(tally: "Tally", folder: Path | None, first: int, *, as_json: bool) -> None:
    from voxpop.cli.report import json_line, printable, promise, promised

    rows = [(list(gram), users) for gram, users in islice(tally.each_gram(), first)]
    if as_json:
        content = {
            "counted": len(tally),
            "error": tally.error,
            **promised(tally.guarantee),
            "with_release": promised(tally.together),
            "plan": tally.plan.to_dict(),
            "folder": None if folder is None else str(folder.resolve()),
            "first": [{"gram": gram, "users": users} for gram, users in rows],
        }
        typer.echo(json_line(content))
        return
    typer.echo(f"Counted {len(tally):,} gram{'' if len(tally) == 1 else 's'}, standard error {tally.error:.3g} users.")
    for gram, users in rows:
        typer.echo(f"  {users:>12,}  {printable(gram)}")
    typer.echo(promise(tally.guarantee))
    typer.echo(f"\nTogether with the release itself, if from the same users: {tally.together}")
    if folder is not None:
        typer.echo(f"\nSaved to {folder}")
