"""`voxpop hitters`: from a table of who wrote what to the words that many users hold."""

from typing import Annotated

import typer

from voxpop.cli.options import (
    Delta,
    Epsilon,
    Items,
    Json,
    Output,
    Seed,
    Sequence,
    Sources,
    Text,
    Tokenizer,
    Tokens,
    User,
    budget_of,
)

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
    epsilon: Epsilon = None,
    delta: Delta = None,
    max_length: MaxLength = 10,
    unit: Unit = 1,
    words: WordsOfUser = "one",
    sampling: Sampling = "bernoulli",
    accounting: Accounting = "exact",
    alphabet: Alphabet = "characters",
    tokenizer: Tokenizer = "words",
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Release the words that many users hold, by sampled votes alone (TrieHH).

    voxpop hitters posts.parquet --user author --text body --epsilon 1 --delta 1e-8 -o words
    """
    from voxpop.cli.columns import chosen_columns, tokenizer_of
    from voxpop.cli.report import report
    from voxpop.cli.stages import stage
    from voxpop.hitters.heavy_hitters import HeavyHitters
    from voxpop.release.saving import check_target

    # All that can be wrong with the call comes before the data, and the data before the budget is spent.
    budget = budget_of(epsilon, delta)
    folder = check_target(output)
    fields = {"words": words, "sampling": sampling, "accounting": accounting, "alphabet": alphabet}
    plan = HeavyHitters(max_length=max_length, unit=unit, **fields).plan(budget)  # type: ignore[arg-type]
    columns = chosen_columns(source, user, text=text, tokens=tokens, items=items, sequence=sequence)
    cut = tokenizer_of(tokenizer)
    with stage("Reading"):
        from voxpop.corpus.read import read

        corpus = read(source, tokenizer=cut, **columns)
    with stage("Releasing"):
        release = plan.release(corpus, seed)
    release.save(folder)
    report(release, folder, as_json=json)
