"""gensim phrases that join the tokens of released grams."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from voxpop.errors import InputError
from voxpop.release.exports.joining import joined, longest, missing

if TYPE_CHECKING:
    from gensim.models.phrases import FrozenPhrases

    from voxpop.release.released import Released


@dataclass(frozen=True)
class _Found:
    """What `FrozenPhrases` asks of the model it is made from."""

    phrasegrams: dict[str, float]
    delimiter: str
    threshold: float = 0.0
    min_count: int = 1
    scoring: None = None
    connector_words: frozenset[str] = frozenset()

    def export_phrases(self) -> dict[str, float]:
        """Return the phrases and their scores."""
        return self.phrasegrams


def gensim_phrases(release: "Released", delimiter: str = "_") -> "FrozenPhrases":
    """Return phrases; see `Release.to_gensim`."""
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
    # A release says which grams, not how many: every phrase has the same score, above the threshold.
    scores = {string: 1.0 for string, length in zip(strings, lengths, strict=True) if length > 1}
    return FrozenPhrases(_Found(scores, delimiter))
