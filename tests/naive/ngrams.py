"""Reference implementation of n-grams (Algorithm 1 of DPNE) and of guided pruning, with tuples, sets and loops.

A user is a list of documents, and a document is a list of tokens. DPNE is Kim et al., "Differentially Private n-gram
Extraction" (2021). `docs/privacy/errata.md` lists the errors of the paper that the code corrects.
"""

from fractions import Fraction

Gram = tuple[str, ...]
Documents = list[list[str]]


def grams_of(documents: Documents, length: int) -> list[Gram]:
    """Return all grams of a length in order. No gram spans two documents."""
    return [
        tuple(document[start : start + length]) for document in documents for start in range(len(document) - length + 1)
    ]


def is_valid(gram: Gram, shorter: set[Gram], words: set[str], *, single: bool) -> bool:
    """Return whether the prefix and the suffix, or the prefix and the last token, were released (DPNE, Section 2)."""
    return gram[:-1] in shorter and (gram[-1] in words if single else gram[1:] in shorter)


def valid_grams(shorter: set[Gram], words: set[str], *, single: bool) -> set[Gram]:
    """Return the set V_k of DPNE by testing every extension of every released gram."""
    extended = {(*gram, word) for gram in shorter for word in words}
    return {gram for gram in extended if is_valid(gram, shorter, words, single=single)}


def forecast(gram: Gram, estimates: dict[Gram, int], before: dict[Gram, int], fine: int) -> Fraction:
    """Return estimate(prefix) * estimate(suffix) / estimate(overlap), in units of 1 / `fine`."""
    return Fraction(estimates[gram[:-1]] * estimates[gram[1:]] * fine, before[gram[1:-1]])


def held(users: list[Documents], length: int, candidates: set[Gram]) -> list[list[Gram]]:
    """Return the distinct candidates of each user, in order of first appearance."""
    return [[gram for gram in dict.fromkeys(grams_of(user, length)) if gram in candidates] for user in users]


def is_downward_closed(grams: set[Gram]) -> bool:
    """Return whether the set contains the prefix and suffix of each of its grams."""
    return all(gram[:-1] in grams and gram[1:] in grams for gram in grams if len(gram) > 1)
