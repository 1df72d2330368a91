"""`voxpop ngrams`: from a table of who wrote what to released phrases."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli.bundles import Charge, OrderedColumns, Place, Result, Spend, Where, bundled
from voxpop.cli.options import (
    Accounting,
    Budgets,
    Eta,
    Guide,
    Limits,
    MaxLength,
    Measurement,
    PhraseAlpha,
    Prevote,
    Pruning,
    Spending,
    Thresholds,
    Values,
    WeightingName,
    Words,
    numbers_of,
)
from voxpop.cli.releasing import release_and_report

if TYPE_CHECKING:
    from voxpop.ngrams.plan import NGramsPlan
    from voxpop.privacy.budget import Budget

__all__ = ["Options", "Spend", "ngrams"]

Sentences = Annotated[bool, typer.Option("--sentences", help="Cut texts into sentences; phrases stay within one.")]


@dataclass(frozen=True)
class Options:
    """The fields of an extraction; lists are numbers with commas between them."""

    max_length: MaxLength = 9
    limit: Limits = "100"
    eta: Eta = 0.01
    weighting: WeightingName = "l2-descent"
    guide: Guide = True
    pruning: Pruning = "both"
    budgets: Budgets = "auto"
    values: Values = None
    accounting: Accounting = "joint"
    alpha: PhraseAlpha = 5.0
    thresholds: Thresholds = "votes"
    measurement: Measurement = 0.02
    spending: Spending = None
    words: Words = None
    prevote: Prevote = True

    def planned(self, budget: "Budget") -> "NGramsPlan":
        """Return the plan.

        Raises:
            InputError: if a number cannot be read, or a field is out of range.
        """
        from voxpop.ngrams.ngrams import NGrams

        limits = numbers_of("--limit", self.limit, int)
        shares: Any = self.budgets
        if shares not in ("auto", "equal"):
            shares = numbers_of("--budgets", shares, float)
        worth = None if self.values is None else numbers_of("--values", self.values, float)
        fields: dict[str, Any] = {**vars(self), "limit": _single(limits), "budgets": _single(shares), "values": worth}
        return NGrams(**fields).plan(budget)


@bundled
def ngrams(
    where: Where,
    columns: OrderedColumns,
    options: Options,
    spend: Spend,
    charge: Charge,
    place: Place,
    result: Result,
    sentences: Sentences = False,
) -> None:
    """Release the phrases of every length that many users share.

    voxpop ngrams posts.parquet --user author --text body --epsilon 4 --delta 1e-7 -o phrases
    """
    budget = spend.budget
    release_and_report(lambda: options.planned(budget), where, columns, charge, place, result, sentences=sentences)


def _single(values: Any) -> Any:
    return values[0] if isinstance(values, list) and len(values) == 1 else values
