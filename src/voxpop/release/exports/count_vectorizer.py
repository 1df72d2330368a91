"""A scikit-learn vectorizer that counts the released grams and nothing else."""

from typing import TYPE_CHECKING, Any

from voxpop.release.exports.joining import joined, longest, missing
from voxpop.release.exports.text_cutter import Cutter

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer

    from voxpop.release.released import Released


def count_vectorizer(release: "Released", tokenizer: Any, options: dict[str, Any]) -> "CountVectorizer":
    """Return a vectorizer; see `Release.to_count_vectorizer`."""
    try:
        from sklearn.feature_extraction.text import CountVectorizer
    except ImportError:
        raise missing("scikit-learn", "scikit-learn") from None
    grams = joined(release, " ", "a CountVectorizer")
    return CountVectorizer(
        vocabulary={gram: number for number, gram in enumerate(grams)},
        ngram_range=(1, longest(release)),
        tokenizer=Cutter(tokenizer),
        token_pattern=None,
        preprocessor=as_it_is,
        lowercase=False,
        **options,
    )


def as_it_is(document: Any) -> Any:
    """Leave all that concerns text to the tokenizer."""
    return document
