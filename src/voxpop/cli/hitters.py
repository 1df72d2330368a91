"""`voxpop hitters`: from a table of who wrote what to the words that many users hold."""

from typing import Annotated, Any

import typer

from voxpop.cli.options import (
    Dataset,
    Delta,
    Epsilon,
    Items,
    Json,
    LedgerFile,
    Memory,
    Order,
    Output,
    Overwrite,
    Seed,
    Sequence,
    Session,
    Sources,
    Text,
    Tokenizer,
    Tokens,
    User,
    WorkFolder,
    budget_of,
    paused,
)
from voxpop.cli.releasing import release_and_report

MaxLength = Annotated[int, typer.Option(help="Most symbols of a word, its end mark counted.")]
Unit = Annotated[int, typer.Option(help="Symbols by which prefixes grow in a round, 1 to 4.")]
WordsOfUser = Annotated[str, typer.Option("--words", help="one: each user's most frequent word. many: any of them.")]
Sampling = Annotated[str, typer.Option(help="bernoulli, or fixed: the paper's batches, without a guarantee.")]
Accounting = Annotated[str, typer.Option(help="exact, or published: the paper's theorem, its corollary corrected.")]
Alphabet = Annotated[
    str, typer.Option(help="What a symbol is: characters, bytes, or tokens (a word is then a whole document).")
]


def hitters(
    source: Sources,
    output: Output,
    user: User = None,
    text: Text = None,
    tokens: Tokens = None,
    items: Items = None,
    sequence: Sequence = None,
    order: Order = None,
    session: Session = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    max_length: MaxLength = 10,
    unit: Unit = 1,
    words: WordsOfUser = "one",
    sampling: Sampling = "bernoulli",
    accounting: Accounting = "exact",
    alphabet: Alphabet = "characters",
    tokenizer: Tokenizer = "words",
    ledger: LedgerFile = None,
    dataset: Dataset = None,
    memory: Memory = None,
    work_folder: WorkFolder = None,
    overwrite: Overwrite = False,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Release the words that many users hold, by sampled votes alone (TrieHH).

    voxpop hitters posts.parquet --user author --text body --epsilon 1 --delta 1e-8 -o words
    """
    from voxpop.hitters.heavy_hitters import HeavyHitters

    budget = budget_of(epsilon, delta)
    fields: dict[str, Any] = {"words": words, "sampling": sampling, "accounting": accounting, "alphabet": alphabet}
    release_and_report(
        lambda: HeavyHitters(max_length=max_length, unit=unit, **fields).plan(budget),
        source,
        output,
        user,
        {"text": text, "tokens": tokens, "items": items, "sequence": sequence},
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
    )
