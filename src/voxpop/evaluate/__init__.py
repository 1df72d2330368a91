"""Comparisons: what reads private truth says "private" in its name, and never enters a release."""

from voxpop.evaluate.by_length import released_by_length
from voxpop.evaluate.k_anonymity import private_coverage, private_user_counts
from voxpop.evaluate.ngram_truth import private_gram_counts, private_ngram_coverage, private_spurious_share

__all__ = [
    "private_coverage",
    "private_gram_counts",
    "private_ngram_coverage",
    "private_spurious_share",
    "private_user_counts",
    "released_by_length",
]
