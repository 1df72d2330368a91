"""spaCy patterns that find the released grams in documents."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from voxpop.release.exports.joining import joined, missing
from voxpop.segmenting import FOLDED

if TYPE_CHECKING:
    from spacy.matcher import PhraseMatcher

    from voxpop.release.released import Released

LABEL = "released"
SLANTED = "’"


def phrase_matcher(release: "Released", nlp: Any, label: str, attribute: str) -> "PhraseMatcher":
    """Return a matcher; see `Release.to_phrase_matcher`."""
    try:
        from spacy.matcher import PhraseMatcher
    except ImportError:
        raise missing("spaCy", "spacy") from None
    matcher = PhraseMatcher(nlp.vocab, attr=attribute)
    # Patterns are cut by the pipeline that cuts the documents, so that "don't" is the same tokens in both.
    matcher.add(label, list(nlp.tokenizer.pipe(gram for gram in _texts(release) if gram.strip())))
    return matcher


def entity_patterns(release: "Released", label: str = LABEL) -> Iterator[dict[str, str]]:
    """Yield the patterns of an entity ruler: one object per gram, as in its `.jsonl` files."""
    for text in _texts(release):
        yield {"label": label, "pattern": text}


def _texts(release: "Released") -> list[str]:
    """Return the grams as texts; where they hold an apostrophe, also as phones write it."""
    texts = joined(release, " ", "a spaCy pattern")
    slanted = [text.replace("'", SLANTED) for text in texts if "'" in text]
    return texts + slanted if release.reading in FOLDED else texts
