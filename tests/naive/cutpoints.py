"""Reference implementation of the cutpoints and charges of bands, which repeats the computation for every candidate."""

from collections.abc import Sequence
from typing import NamedTuple


class Setting(NamedTuple):
    """The public values that determine the choice of cutpoints.

    Attributes:
        chances: For each cutpoint, the probability that a candidate without users reaches it.
        reference: The index of the reference cutpoint. The number of candidates below this cutpoint determines the
            estimate of empty candidates.
        prices: The possible prices in increasing order.
        share: The number of spurious grams allowed for each released gram.
        spare: The number of spurious grams allowed regardless of the number of released grams.
    """

    chances: Sequence[float]
    reference: int
    prices: Sequence[float]
    share: float
    spare: float

    @property
    def each(self) -> float:
        """The estimated number of candidates without users for each candidate below the reference."""
        return 1 / (1 - self.chances[self.reference])


Band = Sequence[int]
"""The level of every candidate, which is the number of cutpoints that it reaches."""


def reached(band: Band, cutpoint: int) -> int:
    """Return the number of candidates that reach a cutpoint."""
    return sum(level > cutpoint for level in band)


def below(band: Band, setting: Setting) -> int:
    """Return the number of candidates that do not reach the reference."""
    return len(band) - reached(band, setting.reference)


def taken(band: Band, setting: Setting, charge: float) -> int:
    """Return the lowest of the best cutpoints, or the number of cutpoints if each costs more than it gains."""
    empty = setting.each * (below(band, setting) + 1)
    values = [reached(band, i) - charge * empty * chance for i, chance in enumerate(setting.chances)] + [0.0]
    return values.index(max(values))


def allowed_for(band: Band, setting: Setting, charge: float) -> float:
    """Return the number of spurious grams that the rule allows for a band at a given price."""
    own = taken(band, setting, charge)
    alone = setting.each * (below(band, setting) + 1) * [*setting.chances, 0.0][own]
    # Find the first level at which one more gram would be selected if the estimate were lower by one.
    for level, chance in enumerate(setting.chances):
        values = [
            reached(band, i) + (i <= level) - charge * setting.each * below(band, setting) * each
            for i, each in enumerate(setting.chances)
        ] + [0.0]
        if values.index(max(values)) <= level:
            return max(alone, setting.each * below(band, setting) * chance)
    return alone


def chosen(bands: Sequence[Band], setting: Setting) -> list[int]:
    """Return the cutpoint of each band at the lowest price that satisfies the limit on spurious grams."""
    for charge in setting.prices:
        cutpoints = [taken(band, setting, charge) for band in bands]
        released = sum(reached(band, cutpoint) for band, cutpoint in zip(bands, cutpoints, strict=True))
        if sum(allowed_for(band, setting, charge) for band in bands) <= setting.share * released + setting.spare:
            return cutpoints
    return [len(setting.chances)] * len(bands)


def charged(bands: Sequence[Band], setting: Setting) -> list[float]:
    """Return the charge of each band.

    To compute the charge, move each candidate below the reference to every possible level.
    """
    found = []
    for number, band in enumerate(bands):
        total = 0.0
        for place, level in enumerate(band):
            if level > setting.reference:
                continue
            for other, chance in enumerate([*setting.chances, 0.0][1:], start=1):
                changed = [*bands[:number], [*band[:place], other, *band[place + 1 :]], *bands[number + 1 :]]
                if chosen(changed, setting)[number] < other:
                    total += setting.chances[other - 1] - chance
        found.append(setting.each * total)
    return found
