"""Comparisons: what reads private truth says "private" in its name, and never enters a release."""

from voxpop.evaluate.by_length import released_by_length
from voxpop.evaluate.k_anonymity import private_coverage, private_user_counts
from voxpop.evaluate.ngram_truth import private_gram_counts, private_ngram_coverage, private_spurious_share
from voxpop.evaluate.resemblance import private_resemblance
from voxpop.evaluate.sequences import (
    SequenceData,
    as_sequences,
    private_counts,
    private_length_distance,
    private_queries,
    private_relative_error,
    private_sequences,
    private_top_patterns,
    private_true_positives,
)

__all__ = [
    "SequenceData",
    "as_sequences",
    "private_counts",
    "private_coverage",
    "private_gram_counts",
    "private_length_distance",
    "private_ngram_coverage",
    "private_queries",
    "private_relative_error",
    "private_resemblance",
    "private_sequences",
    "private_spurious_share",
    "private_top_patterns",
    "private_true_positives",
    "private_user_counts",
    "released_by_length",
]
