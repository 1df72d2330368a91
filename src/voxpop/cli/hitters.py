"""`voxpop hitters`: from a table of who wrote what to the words that many users hold."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli.bundles import ONE_MACHINE, Charge, Columns, Result, Spend, Where, bundled
from voxpop.cli.releasing import release_and_report

if TYPE_CHECKING:
    from voxpop.hitters.plan import HittersPlan
    from voxpop.privacy.budget import Budget

__all__ = ["Options", "Spend", "hitters"]

MaxLength = Annotated[int, typer.Option(help="Most symbols of a word, its end mark counted.")]
Unit = Annotated[int, typer.Option(help="Symbols by which prefixes grow in a round, 1 to 4.")]
WordsOfUser = Annotated[str, typer.Option("--words", help="one: each user's most frequent word. many: any of them.")]
Sampling = Annotated[str, typer.Option(help="bernoulli, or fixed: the paper's batches, without a guarantee.")]
Accounting = Annotated[str, typer.Option(help="exact, or published: the paper's theorem, its corollary corrected.")]
Alphabet = Annotated[
    str, typer.Option(help="What a symbol is: characters, bytes, or tokens (a word is then a whole document).")
]


@dataclass(frozen=True)
class Options:
    """The fields of heavy hitters."""

    max_length: MaxLength = 10
    unit: Unit = 1
    words: WordsOfUser = "one"
    sampling: Sampling = "bernoulli"
    accounting: Accounting = "exact"
    alphabet: Alphabet = "characters"

    def planned(self, budget: "Budget") -> "HittersPlan":
        """Return the plan."""
        from voxpop.hitters.heavy_hitters import HeavyHitters

        fields: dict[str, Any] = vars(self)
        return HeavyHitters(**fields).plan(budget)


@bundled
def hitters(where: Where, columns: Columns, options: Options, spend: Spend, charge: Charge, result: Result) -> None:
    """Release the words that many users hold, by sampled votes alone (TrieHH).

    voxpop hitters posts.parquet --user author --text body --epsilon 1 --delta 1e-8 -o words
    """
    budget = spend.budget
    release_and_report(lambda: options.planned(budget), where, columns, charge, ONE_MACHINE, result)
