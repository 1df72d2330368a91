"""What bounds an exploration: public numbers."""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds an exploration, all public.

    Attributes:
        epsilon: the budget, exact.
        alphabet: number of symbols.
        max_length: most symbols of one sequence.
        max_gram: length of the longest gram.
        balanced: whether counts are made consistent our way, or as published.
        keep_all: whether all children are kept at the root and where no deeper level follows, as CAC12 does; otherwise
            only those above the threshold.
        contexts: whether the nodes are contexts, all of whose counts are released, and not grams.
    """

    epsilon: Fraction
    alphabet: int
    max_length: int
    max_gram: int
    keep_all: bool
    balanced: bool = False
    contexts: bool = False
