"""Hugging Face tokenizers of subwords, trained on released words and their noisy counts, and on nothing else.

The training text is public: each released word, behind a space, about as often as users hold it. So the tokenizer is
private by post-processing, with the guarantee of the words and the counts together.
"""

import string
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from voxpop.arguments import check_choice, check_whole
from voxpop.choices import SUBWORDS, Subwords
from voxpop.errors import InputError
from voxpop.release.exports.joining import missing
from voxpop.segmenting import ANY_APOSTROPHE, FOLDED

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from voxpop.release.released import Released

MOST_REPEATED = 1 << 20
"""About how many words the training text has at most: merges follow from ratios, and longer texts only take longer."""
LARGEST = 1 << 20
LEAST = 512
"""Above the 256 bytes that a byte-level vocabulary begins with."""
VISIBLE = [letter for letter in string.printable if not letter.isspace()]
IN_NORMAL_FORM = (*FOLDED, "characters")
Counts = Iterable[tuple[tuple[str, ...], int]]
"""Grams, each with a noisy number of users."""


def subwords(release: "Released", counts: Counts, model: Subwords, size: int, unknown: str) -> "Tokenizer":
    """Return a tokenizer of a release and the noisy numbers of users of its grams; see `Tally.to_tokenizer`."""
    check_choice("model", model, SUBWORDS)
    check_whole("size", size, LARGEST, "how many subwords the vocabulary has at most", LEAST)
    if not isinstance(unknown, str) or not unknown or any(gram == (unknown,) for gram in release.each_gram()):
        raise InputError("`unknown` must be a string, such as [UNK], and no released word itself.")
    if find_spec("tokenizers") is None:
        raise missing("the Hugging Face library tokenizers", "tokenizers")
    result: Tokenizer
    result, trainer = {"bpe": _bpe, "wordpiece": _wordpiece, "unigram": _unigram}[model](size, unknown)
    if release.reading in IN_NORMAL_FORM:
        result.normalizer = _folding(release.reading)
    result.train_from_iterator(_text(counts), trainer)
    return result


def _folding(reading: str) -> Any:
    """Return what folds texts as those of the release were folded."""
    from tokenizers import Regex, normalizers

    steps: list[Any] = [normalizers.NFC(), normalizers.Lowercase(), normalizers.NFC()]
    if reading in FOLDED:
        steps.append(normalizers.Replace(Regex(ANY_APOSTROPHE), "'"))
    return normalizers.Sequence(steps)


def _text(counts: Counts) -> Iterator[str]:
    """Yield each released word as often as its noisy count says, at least once, scaled where that is very often."""
    words = [(gram[0], max(1, users)) for gram, users in counts if len(gram) == 1]
    scale = min(1.0, MOST_REPEATED / max(1, sum(users for _, users in words)))
    for word, users in words:
        yield f" {word}" * max(1, round(scale * users))


def _bpe(size: int, _: str) -> tuple[Any, Any]:
    """Merge bytes: every text can be encoded, and decoded again to the letter, so nothing is unknown."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    result = Tokenizer(models.BPE())
    result.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    result.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return result, trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=alphabet)


def _wordpiece(size: int, unknown: str) -> tuple[Any, Any]:
    """Merge letters within words, as BERT does."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    result = Tokenizer(models.WordPiece(unk_token=unknown))
    result.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    result.decoder = decoders.WordPiece()
    given: dict[str, Any] = {"special_tokens": [unknown], "initial_alphabet": VISIBLE}
    return result, trainers.WordPieceTrainer(vocab_size=size, show_progress=False, **given)


def _unigram(size: int, unknown: str) -> tuple[Any, Any]:
    """Keep the likeliest pieces of words, as SentencePiece does."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    result = Tokenizer(models.Unigram())
    result.pre_tokenizer = pre_tokenizers.Metaspace()
    result.decoder = decoders.Metaspace()
    given: dict[str, Any] = {"special_tokens": [unknown], "unk_token": unknown, "initial_alphabet": VISIBLE}
    return result, trainers.UnigramTrainer(vocab_size=size, show_progress=False, **given)
