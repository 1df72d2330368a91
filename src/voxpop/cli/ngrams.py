"""`voxpop ngrams`: from a table of who wrote what to released phrases."""

from typing import Annotated

import typer

from voxpop.cli.engines import Engine, Master
from voxpop.cli.options import (
    Accounting,
    Alpha,
    Budgets,
    Dataset,
    Delta,
    Epsilon,
    Eta,
    Guide,
    Json,
    LedgerFile,
    Limits,
    MaxLength,
    Measurement,
    Memory,
    Order,
    Output,
    Overwrite,
    Pruning,
    Seed,
    Sequence,
    Session,
    Sources,
    Text,
    Thresholds,
    Tokenizer,
    Tokens,
    User,
    Values,
    WeightingName,
    WorkFolder,
    budget_of,
    ngrams_of,
    paused,
)
from voxpop.cli.releasing import release_and_report

Sentences = Annotated[bool, typer.Option("--sentences", help="Cut texts into sentences; phrases stay within one.")]


def ngrams(
    source: Sources,
    output: Output,
    user: User = None,
    text: Text = None,
    tokens: Tokens = None,
    sequence: Sequence = None,
    order: Order = None,
    session: Session = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    max_length: MaxLength = 9,
    limit: Limits = "100",
    eta: Eta = 0.01,
    weighting: WeightingName = "l2-descent",
    guide: Guide = True,
    pruning: Pruning = "both",
    budgets: Budgets = "auto",
    values: Values = None,
    accounting: Accounting = "joint",
    alpha: Alpha = 5.0,
    thresholds: Thresholds = "votes",
    measurement: Measurement = 0.02,
    tokenizer: Tokenizer = "words",
    sentences: Sentences = False,
    ledger: LedgerFile = None,
    dataset: Dataset = None,
    memory: Memory = None,
    work_folder: WorkFolder = None,
    engine: Engine = "local",
    master: Master = None,
    overwrite: Overwrite = False,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Release the phrases of every length that many users share.

    voxpop ngrams posts.parquet --user author --text body --epsilon 4 --delta 1e-7 -o phrases
    """
    budget = budget_of(epsilon, delta)
    fields = {"weighting": weighting, "accounting": accounting, "alpha": alpha, "thresholds": thresholds}
    shape = {"max_length": max_length, "eta": eta, "guide": guide, "pruning": pruning, "measurement": measurement}
    release_and_report(
        lambda: ngrams_of(limit, budgets, values, **shape, **fields).plan(budget),
        source,
        output,
        user,
        {"text": text, "tokens": tokens, "sequence": sequence},
        tokenizer=tokenizer,
        seed=seed,
        json=json,
        overwrite=overwrite,
        order=order,
        session=paused(session),
        ledger=ledger,
        dataset=dataset,
        memory=memory,
        work_folder=work_folder,
        engine=engine,
        master=master,
        sentences=sentences,
    )
