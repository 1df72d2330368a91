"""How the rounds of a focused set union share a budget: public constants, chosen once, for every corpus."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Schedule:
    """The shape of the rounds, before a budget gives it a size.

    Attributes:
        opening: share of the first round, which only releases, in mu.
        shares: shares of the later rounds, which add up evidence, in mu.
        power: a round's factor in the evidence is its mu to this power; what is undecided gets more weight later.
        fall: by how many standard deviations the threshold falls from one round to the next.
        floors: evidence below which items are dropped, after each later round but the last.
        alpha: weight stops rising so many standard deviations above the threshold.
        novelty: share of delta for items that one user alone holds.
        opening_novelty: share of that for the first round.
    """

    opening: float
    shares: tuple[float, ...]
    power: float
    fall: float
    floors: tuple[float, ...]
    alpha: float
    novelty: float
    opening_novelty: float


SCHEDULE: Final = Schedule(
    opening=1.2,
    shares=(1.8, 1.7, 1.8, 2.0, 2.3, 2.7, 3.2),
    power=1.8,
    fall=0.25,
    floors=(-1.6, -0.6, 0.5, 1.5, 2.4, 3.3),
    alpha=4.0,
    novelty=0.4,
    opening_novelty=0.03,
)
"""Found by random search on reddit_posts and ubuntu_irc alike (docs/design/0010-focus.md)."""
