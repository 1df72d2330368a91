"""Objects of scikit-learn, spaCy and gensim that count or find released grams; each function needs its library."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from voxpop.errors import InputError
from voxpop.reading.choices import TextTokenizer
from voxpop.reading.segmenting import FOLDED
from voxpop.release.cutting import Cutter

if TYPE_CHECKING:
    from gensim.models.phrases import FrozenPhrases
    from sklearn.feature_extraction.text import CountVectorizer
    from spacy.matcher import PhraseMatcher

    from voxpop.release.release import Release

SLANTED = "’"


def to_count_vectorizer(
    release: "Release", tokenizer: TextTokenizer | None = "words", **options: Any
) -> "CountVectorizer":
    """Return a scikit-learn vectorizer that counts the released grams and needs no fitting.

    Args:
        release: a release of items or grams.
        tokenizer: the tokenizer that `voxpop.read` was given, or None where documents are lists of tokens.
        options: further arguments of `CountVectorizer`, such as `binary=True`.

    Returns:
        A vectorizer with one column for each gram, in canonical order.

    Raises:
        InputError: If two grams are the same once their tokens are joined by spaces, or scikit-learn is not installed.
    """
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
        preprocessor=_unchanged,  # a lambda could not be pickled
        lowercase=False,
        **options,
    )


def _unchanged(document: Any) -> Any:
    return document


def to_phrase_matcher(
    release: "Release", nlp: Any, label: str = "released", attribute: str = "LOWER"
) -> "PhraseMatcher":
    """Return a spaCy matcher that finds the released grams.

    Args:
        release: a release of items or grams.
        nlp: the pipeline that makes the documents. It tokenizes the patterns too.
        label: the name of the matches.
        attribute: the attribute of tokens that is compared: "LOWER" for lower case, "ORTH" for exact spelling.
    """
    try:
        from spacy.matcher import PhraseMatcher
    except ImportError:
        raise missing("spaCy", "spacy") from None
    matcher = PhraseMatcher(nlp.vocab, attr=attribute)
    # The pipeline tokenizes patterns and documents alike, so that "don't" becomes the same tokens in both.
    matcher.add(label, list(nlp.tokenizer.pipe(gram for gram in _texts(release) if gram.strip())))
    return matcher


def entity_patterns(release: "Release", label: str = "released") -> Iterator[dict[str, str]]:
    """Yield the patterns of a spaCy entity ruler: one object for each gram."""
    for text in _texts(release):
        yield {"label": label, "pattern": text}


def _texts(release: "Release") -> list[str]:
    """Return the grams as texts, those with an apostrophe also with the slanted one."""
    texts = joined(release, " ", "a spaCy pattern")
    slanted = [text.replace("'", SLANTED) for text in texts if "'" in text]
    return texts + slanted if release.reading in FOLDED else texts


def to_gensim(release: "Release", delimiter: str = "_") -> "FrozenPhrases":
    """Return gensim phrases that join the tokens of released grams.

    One pass over a list of tokens joins pairs from the left; each further pass joins longer released grams:
    `phrases[phrases[tokens]]`.

    Args:
        release: a release of grams.
        delimiter: the string between joined tokens.

    Raises:
        InputError: If no gram has two tokens, two grams are the same once joined, or gensim is not installed.
    """
    try:
        from gensim.models.phrases import FrozenPhrases
    except ImportError:
        raise missing("gensim", "gensim") from None
    if not delimiter or not isinstance(delimiter, str):
        raise InputError(f"`delimiter` must be a string of at least one character, got {delimiter!r}.")
    if longest(release) < 2:
        raise InputError("gensim phrases have two tokens or more, and this release holds single ones only.")
    strings = joined(release, delimiter, "a gensim phrase")
    lengths = release.grams["length"].to_pylist()
    # A release has no counts: every phrase has the same score, above the threshold.
    scores = {string: 1.0 for string, length in zip(strings, lengths, strict=True) if length > 1}
    return FrozenPhrases(_Found(scores, delimiter))


@dataclass(frozen=True)
class _Found:
    """The attributes that `FrozenPhrases` reads from its source model."""

    phrasegrams: dict[str, float]
    delimiter: str
    threshold: float = 0.0
    min_count: int = 1
    scoring: None = None
    connector_words: frozenset[str] = frozenset()

    def export_phrases(self) -> dict[str, float]:
        """Return the phrases and their scores."""
        return self.phrasegrams


def joined(release: "Release", between: str, where: str) -> list[str]:
    """Return every gram as one string, in canonical order.

    Args:
        release: the released phrases.
        between: the separator between tokens.
        where: the purpose of the strings, in words.

    Raises:
        InputError: where two grams give the same string, such as ("new york",) and ("new", "york").
    """
    strings = [between.join(gram) for gram in release.each_gram()]
    if len(set(strings)) < len(strings):
        raise InputError(
            f"{where} joins tokens by {between!r}, and some tokens of this release hold that themselves, so that two "
            "grams become one. Choose another delimiter where there is one, or write JSON, Arrow or Parquet."
        )
    return strings


def longest(release: "Release") -> int:
    """Return the length of the longest gram, at least 1."""
    return int(release.grams["length"][-1].as_py()) if len(release) else 1


def missing(library: str, package: str) -> InputError:
    """Return the refusal where a library is not installed."""
    return InputError(f"this export needs {library}, which is not installed: pip install {package}.")
