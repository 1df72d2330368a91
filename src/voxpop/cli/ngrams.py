"""`voxpop ngrams`: from a table of who wrote what to released phrases."""

from typing import Annotated

import typer

from voxpop.cli.options import (
    Accounting,
    Alpha,
    Budgets,
    Delta,
    Epsilon,
    Eta,
    Guide,
    Json,
    Kappa,
    Limits,
    MaxLength,
    Measurement,
    Output,
    Pruning,
    Seed,
    Sequence,
    Sources,
    Text,
    Tokenizer,
    Tokens,
    User,
    WeightingName,
    budget_of,
    ngrams_of,
)

Sentences = Annotated[bool, typer.Option("--sentences", help="Cut texts into sentences; phrases stay within one.")]


def ngrams(
    source: Sources,
    output: Output,
    user: User = None,
    text: Text = None,
    tokens: Tokens = None,
    sequence: Sequence = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    max_length: MaxLength = 9,
    limit: Limits = "100",
    eta: Eta = 0.01,
    weighting: WeightingName = "l2-descent",
    guide: Guide = True,
    pruning: Pruning = "both",
    budgets: Budgets = "auto",
    accounting: Accounting = "joint",
    alpha: Alpha = 5.0,
    kappa: Kappa = 0.5,
    measurement: Measurement = 0.02,
    tokenizer: Tokenizer = "words",
    sentences: Sentences = False,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Release the phrases of every length that many users share.

    voxpop ngrams posts.parquet --user author --text body --epsilon 4 --delta 1e-7 -o phrases
    """
    from voxpop.cli.columns import chosen_columns, tokenizer_of
    from voxpop.cli.report import report
    from voxpop.cli.stages import stage
    from voxpop.release.saving import check_target

    # All that can be wrong with the call comes before the data, and the data before the budget is spent.
    budget = budget_of(epsilon, delta)
    folder = check_target(output)
    plan = ngrams_of(
        limit,
        budgets,
        max_length=max_length,
        eta=eta,
        weighting=weighting,
        guide=guide,
        pruning=pruning,
        accounting=accounting,
        alpha=alpha,
        kappa=kappa,
        measurement=measurement,
    ).plan(budget)
    columns = chosen_columns(source, user, text=text, tokens=tokens, sequence=sequence)
    cut = tokenizer_of(tokenizer)
    with stage("Reading"):
        from voxpop.corpus.read import read

        corpus = read(source, tokenizer=cut, sentences=sentences, **columns)
    with stage("Releasing"):
        release = plan.release(corpus, seed)
    release.save(folder)
    report(release, folder, as_json=json)
