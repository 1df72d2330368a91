"""Comparisons: what reads private truth says "private" in its name, and never enters a release.

| file | holds |
|---|---|
| `baselines/` | what others do, to compare with |
| `by_length.py` | releases side by side, length by length |
| `k_anonymity.py` | how a release compares with the items that at least k users hold |
| `ngram_truth.py` | how a release of phrases compares with what users really wrote |
| `sequences.py` | how synthetic sequences compare with the private ones |
| `resemblance.py` | do synthetic sequences pass for real ones? A battery of distances, and a classifier |
"""

from voxpop.evaluate.baselines.held import private_missing_mass
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
