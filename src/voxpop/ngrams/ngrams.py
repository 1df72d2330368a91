"""N-grams: the phrases of every length that many people share (DPNE, 2021), guided by what was already released."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

from voxpop.arguments import check_budget, check_choice, check_whole, check_within, is_real
from voxpop.errors import InputError, UnsoundError
from voxpop.ngrams.budgets import Budgets, budgets_of
from voxpop.ngrams.schedule import ALPHA, MEASUREMENT
from voxpop.privacy.budget import Budget
from voxpop.weighting.soundness import WEIGHTING_RULES

if TYPE_CHECKING:
    from voxpop.corpus.engine import Engine
    from voxpop.ngrams.plan import NGramsPlan
    from voxpop.privacy.charging import Account
    from voxpop.release import Release

LONGEST = 32
LARGEST_LIMIT = 10**7
MOST_VALUE = 1e6
OF_INDIVIDUAL: dict[str, object] = {
    "guide": True,
    "pruning": "both",
    "budgets": "auto",
    "values": None,
    "thresholds": "votes",
}
"""What individual spending is proved and measured with."""
OF_ADAPTIVE: dict[str, object] = {"spending": "individual", "weighting": "l2-descent", "accounting": "joint"}
"""What words in adaptive rounds are proved and measured with."""
SIDE_VOTES = 5
"""Under individual spending: four wide votes at most, and the last one."""


@final
@dataclass(frozen=True, slots=True)
class NGrams:
    """Release the phrases of length 1 to `max_length` that many users share.

    Length after length, every user picks at most `limit` of its distinct grams whose parts were released, and shares
    one unit of weight over them; noise is added to the weight of every candidate, also of those that nobody holds, and
    those above a threshold are released. The release is (epsilon, delta)-differentially private for one user with
    everything that user wrote, and every part of a released phrase is released too. The proof, the paper's errors and
    what we do instead are in docs/privacy/ngrams.md (Kim, Gopi, Kulkarni, Yekhanin, "Differentially Private n-gram
    Extraction", 2021: DPNE).

    Attributes:
        max_length: most tokens in a phrase (the paper's T), at most 32.
        limit: most grams of one user at each length (the paper's Delta_k): one number, or one for each length.
        eta: expected share of released grams that nobody holds, at most; strictly between 0 and 1.
        weighting: "l2-descent" or "weighted", at every length.
        guide: measure the released grams again, cheaply, forecast the next length, and vote for likely candidates only.
            False lets users vote for every candidate whose parts were released, as published.
        pruning: "both" asks that prefix and suffix of a candidate were released, "single" its prefix and last token.
        budgets: how 1/sigma^2 is divided among lengths: "auto" (from public results, `AutoBudgets`), "equal", a ratio c
            (sigma of each length is c times that of the one before), or a list of shares, one for each length.
        values: what a released phrase of each length is worth to you, one number for each: the budget goes where it
            pays. None counts all the same. Only with budgets "auto".
        accounting: "joint" computes delta exactly for noise and novel words together; "published" is the paper's
            delta/2 + delta/2.
        alpha: weight stops rising at threshold + alpha * sigma (l2-descent). 3, as for set union, releases 1 percent
            more but leaves out each frequent word, and all its phrases, once in 700 times; 5 once in 3 million.
        thresholds: "votes" gives likely candidates a lower threshold than unlikely ones, by how the vote of their
            length came out; "published" gives all the same, by the number of candidates.
        measurement: guided only: share of a length's budget that its forecast costs.
        spending: "individual" gives every user a budget of its own, which it spends only at lengths where it holds a
            candidate, and what is left in a last vote on what came close (docs/privacy/individual.md); "shared" charges
            every length to all. Individual spending asks for the defaults of `guide`, `pruning`, `budgets`, `values`
            and `thresholds`, and is the default with them; "shared" is where one of these differs.
        words: "adaptive" releases length 1 in adaptive rounds, as set union does by default (docs/privacy/adaptive.md);
            "once" by one vote. Adaptive rounds ask for individual spending, l2-descent and joint accounting, and are
            the default with them.
        prevote: individual only: ask, with little of the budget, about what the forecast pruned at lengths 2 to 5. It
            takes memory for every pair of released words that somebody wrote; False leaves it out.

    Raises:
        InputError: for a field out of range.
        UnsoundError: for a weighting without a proof under Gaussian noise.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"who": range(2000), "what": ["thank you very much", "see you soon"] * 1000})
        >>> corpus = vp.read(table, user="who", text="what")
        >>> phrases = vp.NGrams(max_length=3, limit=10).release(corpus, vp.Budget(epsilon=4, delta=1e-8))
        >>> phrases.guarantee == vp.Guarantee(4, 1e-8), [run.length for run in phrases.plan.ran]
        (True, [1, 2, 3])
    """

    max_length: int = 9
    limit: int | Sequence[int] = 100
    eta: float = 0.01
    weighting: Literal["l2-descent", "weighted"] = "l2-descent"
    guide: bool = True
    pruning: Literal["both", "single"] = "both"
    budgets: Literal["auto", "equal"] | float | Sequence[float] = "auto"
    values: Sequence[float] | None = None
    accounting: Literal["joint", "published"] = "joint"
    alpha: float = ALPHA
    thresholds: Literal["votes", "published"] = "votes"
    measurement: float = MEASUREMENT
    spending: Literal["individual", "shared"] | None = None
    words: Literal["adaptive", "once"] | None = None
    prevote: bool = True

    def __post_init__(self) -> None:
        """Check every field, and keep lists as tuples."""
        check_whole("max_length", self.max_length, LONGEST, "the most tokens in a phrase; 5 to 9 are usual")
        object.__setattr__(self, "limit", _checked_limit(self.limit, self.max_length))
        object.__setattr__(self, "budgets", _checked_budgets(self.budgets, self.max_length))
        object.__setattr__(self, "values", _checked_values(self.values, self.budgets, self.max_length))
        check_within("eta", self.eta, 1e-9, 0.5, "the share of released phrases that may be spurious; 0.01 is usual")
        check_within("alpha", self.alpha, 0.0, 1000.0, "how far above the threshold weight rises; 5 is usual")
        check_within("measurement", self.measurement, 1e-6, 0.5, "what a forecast may cost; 0.02 is usual")
        for name in ("guide", "prevote"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"`{name}` must be True or False, got {getattr(self, name)!r}.")
        check_choice("pruning", self.pruning, ("both", "single"))
        check_choice("thresholds", self.thresholds, ("votes", "published"))
        check_choice("accounting", self.accounting, ("joint", "published"))
        if self.spending is None:
            object.__setattr__(self, "spending", "shared" if _other_than(self, OF_INDIVIDUAL) else "individual")
        check_choice("spending", self.spending, ("individual", "shared"))
        if self.spending == "individual":
            _check_asked(self, "spending", OF_INDIVIDUAL, "shared")
        _check_weighting(self.weighting)
        if self.words is None:
            object.__setattr__(self, "words", "once" if _other_than(self, OF_ADAPTIVE) else "adaptive")
        check_choice("words", self.words, ("adaptive", "once"))
        if self.words == "adaptive":
            _check_asked(self, "words", OF_ADAPTIVE, "once")

    @property
    def limits(self) -> tuple[int, ...]:
        """The limit of each length."""
        return (self.limit,) * self.max_length if isinstance(self.limit, int) else tuple(self.limit)

    @property
    def passes(self) -> int:
        """The most votes that there may be."""
        return self.max_length + (SIDE_VOTES if self.spending == "individual" else 0)

    @property
    def shares(self) -> Budgets:
        """The rule by which the lengths share the budget."""
        return budgets_of(self.budgets, self.values or (1.0,) * self.max_length)

    def plan(self, budget: Budget) -> "NGramsPlan":
        """Fill in noise and thresholds for a budget: no data needed.

        Args:
            budget: what may be spent.

        Returns:
            The plan: sigma, range of thresholds and users needed for each length, and what they guarantee together.

        Raises:
            BudgetError: where no threshold can meet the budget.
        """
        from voxpop.ngrams.planning import plan_ngrams

        check_budget(budget)
        return plan_ngrams(self, budget)

    def release(
        self, corpus: "Engine", budget: Budget, seed: int | None = None, ledger: "Account | None" = None
    ) -> "Release":
        """Plan for the budget and release from the corpus.

        Args:
            corpus: what `voxpop.read` or `voxpop.load_corpus` returned, of texts, tokens or sequences.
            budget: what may be spent.
            seed: makes the release reproducible and NOT private, and marks it so; leave it out for real data.
            ledger: an account that is charged first; see `voxpop.Ledger`.

        Returns:
            The phrases, by length and then in order of their bytes, with the plan that ran and its guarantee.
        """
        from voxpop.privacy.charging import run

        return run(self.plan(budget), corpus, seed, ledger)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {
            "mechanism": "n-grams",
            "max_length": self.max_length,
            "limit": self.limit if isinstance(self.limit, int) else list(self.limit),
            "eta": self.eta,
            "weighting": self.weighting,
            "noise": "gaussian",
            "guide": self.guide,
            "pruning": self.pruning,
            "budgets": list(self.budgets) if isinstance(self.budgets, tuple) else self.budgets,
            "values": None if self.values is None else list(self.values),
            "accounting": self.accounting,
            "alpha": self.alpha,
            "thresholds": self.thresholds,
            "measurement": self.measurement,
            "spending": self.spending,
            "words": self.words,
            "prevote": self.prevote and self.spending == "individual",
        }


def _check_asked(ngrams: NGrams, field: str, wanted: dict[str, object], other: str) -> None:
    """Refuse what has no proof, or no meaning, with the value of a field."""
    different = _other_than(ngrams, wanted)
    if different:
        name = different[0]
        raise InputError(
            f'{field}="{getattr(ngrams, field)}" asks for {name}={wanted[name]!r}, got {getattr(ngrams, name)!r}. '
            f'Leave `{name}` out, or use {field}="{other}".'
        )


def _other_than(ngrams: NGrams, wanted: dict[str, object]) -> list[str]:
    """Return the fields that have other values."""
    return [name for name, value in wanted.items() if getattr(ngrams, name) != value]


def _check_weighting(weighting: object) -> None:
    sound = " or ".join(
        f'"{name}"' for name, each in reversed(WEIGHTING_RULES.items()) if each.refused_for_grams is None
    )
    weighting_rule = WEIGHTING_RULES.get(weighting) if isinstance(weighting, str) else None
    if weighting_rule is None:
        raise InputError(f"`weighting` must be {sound}, got {weighting!r}.")
    if weighting_rule.refused_for_grams is not None:
        raise UnsoundError(
            f"{weighting} weighting is refused for n-grams: {weighting_rule.refused_for_grams}. Use {sound}."
        )


def _checked_limit(limit: object, lengths: int) -> int | tuple[int, ...]:
    meaning = "the most grams of one user at one length; 100 is a common start"
    if isinstance(limit, Sequence) and not isinstance(limit, str):
        if len(limit) != lengths:
            raise InputError(f"`limit` must be one number or {lengths}, one for each length; got {len(limit)} of them.")
        for each in limit:
            check_whole("limit", each, LARGEST_LIMIT, meaning)
        return tuple(limit)
    check_whole("limit", limit, LARGEST_LIMIT, meaning)
    return int(limit)  # type: ignore[call-overload, no-any-return]


def _checked_budgets(budgets: object, lengths: int) -> str | float | tuple[float, ...]:
    if isinstance(budgets, str):
        if budgets not in ("auto", "equal"):
            raise InputError(f'`budgets` must be "auto", "equal", a ratio or a list of shares, got {budgets!r}.')
        return budgets
    if isinstance(budgets, Sequence):
        if len(budgets) != lengths or not all(is_real(share) and share > 0 for share in budgets):
            raise InputError(
                f"`budgets` must have {lengths} positive shares, one for each length, got {list(budgets)}."
            )
        return tuple(float(share) for share in budgets)
    check_within("budgets", budgets, 0.1, 10.0, "the ratio of sigma from one length to the next; 0.9 to 1.4 are usual")
    return float(budgets)  # type: ignore[arg-type]


def _checked_values(values: object, budgets: object, lengths: int) -> tuple[float, ...] | None:
    if values is None:
        return None
    if budgets != "auto":
        raise InputError(
            f'`values` divide the budget only with budgets="auto", got budgets={budgets!r}. Give one of them.'
        )
    numbers = list(values) if isinstance(values, Sequence) and not isinstance(values, str) else []
    if len(numbers) != lengths or not all(is_real(value) and 0 <= value <= MOST_VALUE for value in numbers):
        raise InputError(
            f"`values` must be {lengths} numbers from 0 to {MOST_VALUE:g}, what a phrase of each length is worth; "
            f"got {values!r}."
        )
    if not numbers[-1] > 0:
        raise InputError("the last of `values` must be above 0; lower `max_length` to the last length that counts.")
    return tuple(map(float, numbers))
