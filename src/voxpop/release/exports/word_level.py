"""A Hugging Face tokenizer whose vocabulary is the released tokens."""

import re
from typing import TYPE_CHECKING, Any

from voxpop.errors import InputError
from voxpop.release.exports.joining import missing
from voxpop.release.exports.text_cutter import NAMES
from voxpop.segmenting import ANY_APOSTROPHE, URL

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from voxpop.release.released import Released

WORD = r"[\p{L}\p{M}\p{N}]+(?:'[\p{L}\p{M}\p{N}]+)*"
FINAL_SIGMA = r"(?<=\p{L})Σ(?![\p{L}])"


def word_level(release: "Released", tokenizer: Any, unknown: str = "[UNK]") -> "Tokenizer":
    """Return a tokenizer; see `Release.to_tokenizer`."""
    try:
        from tokenizers import Tokenizer, models
    except ImportError:
        raise missing("the Hugging Face library tokenizers", "tokenizers") from None
    tokens = [gram[0] for gram in release.each_gram() if len(gram) == 1]
    if unknown in tokens:
        raise InputError(f"{unknown!r} is a released token itself; give another one as `unknown`.")
    vocabulary = {token: number for number, token in enumerate([unknown, *tokens])}
    result = Tokenizer(models.WordLevel(vocabulary, unk_token=unknown))
    result.add_special_tokens([unknown])
    normalizer, splitter = _steps(tokenizer)
    if normalizer is not None:
        result.normalizer = normalizer
    if splitter is not None:
        result.pre_tokenizer = splitter
    return result


def _steps(tokenizer: Any) -> tuple[Any, Any]:
    """Return what normalises and what splits, in the library's own parts, so that the result can be saved."""
    from tokenizers import Regex, normalizers, pre_tokenizers

    split = pre_tokenizers.Split
    # Python lowers a capital sigma at the end of a word to its final form; the library's own step does not.
    sigma = normalizers.Replace(Regex(FINAL_SIGMA), "ς")
    apostrophes = normalizers.Replace(Regex(ANY_APOSTROPHE), "'")
    lower = [normalizers.NFC(), sigma, normalizers.Lowercase(), normalizers.NFC()]
    if tokenizer is None:
        return None, None
    if tokenizer == "words":
        urls = normalizers.Replace(Regex(URL), " ")
        return normalizers.Sequence([*lower, apostrophes, urls]), split(Regex(WORD), "removed", invert=True)
    if tokenizer == "whitespace":
        return None, pre_tokenizers.WhitespaceSplit()
    if tokenizer == "characters":
        steps = [split(Regex(r"\s+"), "removed"), split(Regex(r"\S"), "isolated")]
        return normalizers.Sequence(lower), pre_tokenizers.Sequence(steps)
    if isinstance(tokenizer, re.Pattern):
        return None, split(Regex(tokenizer.pattern), "removed", invert=True)
    raise InputError(
        f"`tokenizer` must be {', '.join(NAMES)}, a compiled regular expression, or None for lists of tokens; got "
        f"{tokenizer!r}. A callable, or ICU's dictionaries, cannot become part of a tokenizer file."
    )
