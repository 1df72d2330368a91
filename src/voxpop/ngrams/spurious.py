"""How many spurious grams each length may add: a rule by length, and what is left of it after what came before.

The rule bounds what passes are charged, on every path, and on average no more grams are spurious: see
docs/privacy/ngrams.md ("Spurious grams").
"""

from typing import TYPE_CHECKING, NamedTuple

from voxpop.ngrams.schedule import EARLY_ETA, OWN_ETA_FROM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from voxpop.ngrams.ngrams import NGrams

ALL_SO_FAR, ONE_SHORTER = "all so far", "one shorter"


class SpuriousAllowance(NamedTuple):
    """What a length may have.

    Attributes:
        share: spurious grams for each gram of those that count.
        of: which count: `ALL_SO_FAR`, this length and the spurious ones of shorter lengths too, or `ONE_SHORTER`.
    """

    share: float
    of: str


def allowance(ngrams: "NGrams", length: int) -> SpuriousAllowance:
    """Return the rule of a length from 2 on."""
    if ngrams.thresholds != "votes":
        # As published: p = eta min(1, |S_k| / N) (DPNE, Section 2).
        return SpuriousAllowance(ngrams.eta, ONE_SHORTER)
    if ngrams.spending != "individual":
        return SpuriousAllowance(ngrams.eta, ALL_SO_FAR)
    if length < OWN_ETA_FROM:
        return SpuriousAllowance(EARLY_ETA * ngrams.eta, ALL_SO_FAR)
    return SpuriousAllowance(ngrams.eta, ONE_SHORTER)


def allowed(ngrams: "NGrams", sizes: "Sequence[int]", spent: float) -> tuple[float, float | None]:
    """Return the spurious grams allowed for each gram that the next length releases, and beyond.

    Args:
        ngrams: what is extracted.
        sizes: how many grams each length before released.
        spent: what was charged for spurious grams among them.

    Returns:
        Both numbers; None for the second where thresholds are those of the plan.
    """
    rule, before = allowance(ngrams, len(sizes) + 1), sum(sizes)
    if ngrams.thresholds != "votes":
        return rule.share, None
    if rule.of == ALL_SO_FAR:
        # Spurious so far plus those of this length at most the share of all released, this length counted.
        left = rule.share * before - spent
        return rule.share, left if ngrams.spending != "individual" else max(0.0, left)
    # As many as published for this length, within eta of what was released before it.
    return 0.0, max(0.0, min(rule.share * sizes[-1], ngrams.eta * before - spent))
