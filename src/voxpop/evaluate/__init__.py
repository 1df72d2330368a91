"""Comparisons with private truth: what is computed here says "private" in its name and never enters a release."""

from voxpop.evaluate.k_anonymity import private_coverage, private_user_counts
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
    "private_length_distance",
    "private_queries",
    "private_relative_error",
    "private_sequences",
    "private_top_patterns",
    "private_true_positives",
    "private_user_counts",
]
