"""Comparisons of a release with the private data. Functions that read private data are named `private_...`."""

from benchmarks.baselines.held import private_missing_mass
from benchmarks.evaluation.by_length import released_by_length
from benchmarks.evaluation.k_anonymity import private_coverage, private_user_counts
from benchmarks.evaluation.ngram_truth import (
    private_gram_counts,
    private_missing_grams,
    private_ngram_coverage,
    private_spurious_share,
)
from benchmarks.evaluation.resemblance import private_resemblance
from benchmarks.evaluation.sequences import (
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
    "private_missing_grams",
    "private_missing_mass",
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
