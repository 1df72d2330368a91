"""`voxpop items`: from a table of who wrote what to a released set of items."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from voxpop.cli.bundles import Charge, Columns, Place, Result, Spend, Where, bundled
from voxpop.cli.options import Accounting, Alpha, AtLeast, Beta, Cap, Limit, Noise, Pool, Rounds, UnionWeighting
from voxpop.cli.releasing import release_and_report

if TYPE_CHECKING:
    from voxpop.privacy.budget import Budget
    from voxpop.union.adaptive.plan import AdaptivePlan
    from voxpop.union.plan import UnionPlan

__all__ = ["Options", "Spend", "items"]


@dataclass(frozen=True)
class Options:
    """The fields of a set union."""

    limit: Limit = None
    weighting: UnionWeighting = "adaptive"
    noise: Noise = "gaussian"
    alpha: Alpha = None
    rounds: Rounds = 1
    accounting: Accounting = "joint"
    cap: Cap = None
    pool: Pool = None
    at_least: AtLeast = None
    beta: Beta = None

    def planned(self, budget: "Budget") -> "UnionPlan | AdaptivePlan":
        """Return the plan; the mechanism checks its fields itself."""
        from voxpop.union.set_union import SetUnion

        fields: dict[str, Any] = vars(self)
        return SetUnion(**fields).plan(budget)


@bundled
def items(
    where: Where, columns: Columns, options: Options, spend: Spend, charge: Charge, place: Place, result: Result
) -> None:
    """Release the items that many users share.

    voxpop items posts.parquet --user author --text body --epsilon 4 --delta 1e-7 -o words
    """
    budget = spend.budget
    release_and_report(lambda: options.planned(budget), where, columns, charge, place, result)
