"""Comparisons with private truth: what is computed here says "private" in its name and never enters a release."""

from voxpop.evaluate.k_anonymity import private_coverage, private_user_counts
from voxpop.evaluate.ngram_truth import private_gram_counts, private_ngram_coverage, private_spurious_share

__all__ = [
    "private_coverage",
    "private_gram_counts",
    "private_ngram_coverage",
    "private_spurious_share",
    "private_user_counts",
]
