"""`voxpop items`: from a table of who wrote what to a released set of items."""

from voxpop.cli.options import (
    Accounting,
    Alpha,
    Delta,
    Epsilon,
    Items,
    Json,
    Limit,
    Noise,
    Output,
    Rounds,
    Seed,
    Sequence,
    Sources,
    Text,
    Tokenizer,
    Tokens,
    User,
    WeightingName,
    budget_of,
    set_union_of,
)


def items(
    source: Sources,
    output: Output,
    user: User = None,
    text: Text = None,
    tokens: Tokens = None,
    items: Items = None,
    sequence: Sequence = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    limit: Limit = 100,
    weighting: WeightingName = "l2-descent",
    noise: Noise = "gaussian",
    alpha: Alpha = 3.0,
    rounds: Rounds = 1,
    accounting: Accounting = "joint",
    tokenizer: Tokenizer = "words",
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Release the items that many users share.

    voxpop items posts.parquet --user author --text body --epsilon 4 --delta 1e-7 -o words
    """
    from voxpop.cli.columns import chosen_columns, tokenizer_of
    from voxpop.cli.report import report
    from voxpop.cli.stages import stage
    from voxpop.release.saving import check_target

    # All that can be wrong with the call comes before the data, and the data before the budget is spent.
    budget = budget_of(epsilon, delta)
    folder = check_target(output)
    plan = set_union_of(
        limit=limit, weighting=weighting, noise=noise, alpha=alpha, rounds=rounds, accounting=accounting
    ).plan(budget)
    columns = chosen_columns(source, user, text=text, tokens=tokens, items=items, sequence=sequence)
    cut = tokenizer_of(tokenizer)
    with stage("Reading"):
        from voxpop.corpus.read import read

        corpus = read(source, tokenizer=cut, **columns)
    with stage("Releasing"):
        release = plan.release(corpus, seed)
    release.save(folder)
    report(release, folder, as_json=json)
