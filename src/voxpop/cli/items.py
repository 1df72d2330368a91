"""`voxpop items`: from a table of who wrote what to a released set of items."""

from voxpop.cli.engines import Engine, Master
from voxpop.cli.options import (
    Accounting,
    Alpha,
    Cap,
    Dataset,
    Delta,
    Epsilon,
    Focus,
    Items,
    Json,
    LedgerFile,
    Limit,
    Memory,
    Noise,
    Output,
    Overwrite,
    Rounds,
    Seed,
    Sequence,
    Sources,
    Text,
    Tokenizer,
    Tokens,
    User,
    WeightingName,
    WorkFolder,
    budget_of,
    set_union_of,
)
from voxpop.cli.releasing import release_and_report


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
    focus: Focus = False,
    cap: Cap = None,
    tokenizer: Tokenizer = "words",
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
    """Release the items that many users share.

    voxpop items posts.parquet --user author --text body --epsilon 4 --delta 1e-7 -o words
    """
    budget = budget_of(epsilon, delta)
    fields = {
        "weighting": weighting,
        "noise": noise,
        "alpha": alpha,
        "rounds": rounds,
        "accounting": accounting,
        "focus": focus,
        "cap": cap,
    }
    release_and_report(
        lambda: set_union_of(limit=limit, **fields).plan(budget),
        source,
        output,
        user,
        {"text": text, "tokens": tokens, "items": items, "sequence": sequence},
        tokenizer=tokenizer,
        seed=seed,
        json=json,
        overwrite=overwrite,
        ledger=ledger,
        dataset=dataset,
        memory=memory,
        work_folder=work_folder,
        engine=engine,
        master=master,
    )
