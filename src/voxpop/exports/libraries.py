"""scikit-learn, spaCy and Hugging Face objects that count or find released grams.

Each function needs the corresponding library. The tokens of a Hugging Face tokenizer are released words, or subwords
that are trained on noisy counts. The training text for subwords is public, because it contains each released word about
as often as the noisy number of its users. The tokenizer therefore has the guarantee of the words and the counts
together.
"""

import re
import string
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from voxpop.errors import InputError, required
from voxpop.privacy.budget import check_choice, check_whole
from voxpop.reading.choices import SUBWORDS, Subwords, TextTokenizer
from voxpop.reading.one_text import TOKENIZER_NAMES, Cutter
from voxpop.reading.segmenting import (
    ANY_APOSTROPHE,
    ANY_IGNORED,
    ANY_WITHOUT_WIDTH,
    DOTTED_I,
    URL,
    USELESS_JOINER,
    WORD,
    needs_dictionary,
)

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer
    from spacy.matcher import PhraseMatcher
    from tokenizers import Tokenizer

    from voxpop.release.counts import Counts
    from voxpop.release.release import Release

SLANTED = "’"


def to_count_vectorizer(
    release: "Release", tokenizer: TextTokenizer | None = "words", **options: Any
) -> "CountVectorizer":
    """Return a scikit-learn vectorizer that counts the released grams and needs no fitting.

    Args:
        release: A release of items or grams.
        tokenizer: The tokenizer that was passed to `voxpop.read`, or None if documents are lists of tokens.
        options: Further arguments of `CountVectorizer`, such as `binary=True`.

    Returns:
        A vectorizer with one column for each gram, in canonical order.

    Raises:
        InputError: If two grams are identical after joining tokens with spaces, or scikit-learn is not installed.
    """
    text = required("sklearn.feature_extraction.text", "this export", "scikit-learn")
    grams = joined_grams(release, "a CountVectorizer")
    return text.CountVectorizer(
        vocabulary={gram: number for number, gram in enumerate(grams)},
        ngram_range=(1, int(release.grams["length"][-1].as_py()) if len(release) else 1),
        tokenizer=Cutter(tokenizer),
        token_pattern=None,
        preprocessor=_unchanged,  # A lambda cannot be pickled.
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
        release: A release of items or grams.
        nlp: The pipeline that creates the documents. It also tokenizes the patterns.
        label: The name of the matches.
        attribute: The attribute of tokens to compare, such as "LOWER" for lower case or "ORTH" for exact spelling.
    """
    matcher = required("spacy.matcher", "this export", "spacy").PhraseMatcher(nlp.vocab, attr=attribute)
    # The pipeline tokenizes patterns in the same way as documents, so that "don't" becomes the same tokens in both.
    matcher.add(label, list(nlp.tokenizer.pipe(gram for gram in spacy_texts(release) if gram.strip())))
    return matcher


def spacy_texts(release: "Release") -> list[str]:
    """Return the grams as texts. A gram with an apostrophe is also returned with a typographic apostrophe."""
    texts = joined_grams(release, "a spaCy pattern")
    slanted = [text.replace("'", SLANTED) for text in texts if "'" in text]
    return texts + slanted if release.token_source == "words" else texts


def joined_grams(release: "Release", where: str) -> list[str]:
    """Return every gram as one string, in canonical order, with a space between its tokens.

    Args:
        release: The released phrases.
        where: The purpose of the strings, for the error message.

    Raises:
        InputError: If two grams have the same string, such as ("new york",) and ("new", "york").
    """
    strings = [" ".join(gram) for gram in release.each_gram()]
    if len(set(strings)) < len(strings):
        raise InputError(
            f"{where} separates tokens with spaces. Some tokens of this release contain spaces, so two grams would "
            "become one. Write JSON, Arrow or Parquet."
        )
    return strings


MOST_REPEATED = 1 << 20
"""The approximate maximum number of words in the training text. Merges depend on ratios, so more words do not improve
them."""
_LARGEST = 1 << 20
FINAL_SIGMA = r"(?<=\p{L})Σ(?![\p{L}])"
_LEAST = 512
"""The minimum vocabulary size, which is above the 256 bytes at the start of a byte-level vocabulary."""
VISIBLE = [letter for letter in string.printable if not letter.isspace()]
IN_NORMAL_FORM = ("words", "characters")


def to_tokenizer(release: "Release", tokenizer: TextTokenizer | None = "words", unknown: str = "[UNK]") -> "Tokenizer":
    """Return a Hugging Face tokenizer with the released single tokens as its vocabulary.

    Args:
        release: A release of words.
        tokenizer: The tokenizer for texts: "words", "whitespace", "characters", a compiled regular expression that Rust
            supports too, or None if texts are lists of tokens (`encode(tokens, is_pretokenized=True)`).
        unknown: The token for every other word, with id 0.

    Raises:
        InputError: If `unknown` is a released token, the tokenizer cannot be saved to a file, a dictionary segmented
            some of the words, or the library `tokenizers` is not installed.
    """
    tokenizers = required("tokenizers", "this export", "tokenizers")
    tokens = [gram[0] for gram in release.each_gram() if len(gram) == 1]
    if tokenizer == "words" and any(map(needs_dictionary, tokens)):
        raise InputError(
            "some words of this release are of scripts without spaces, such as Chinese and Thai, and a tokenizer file "
            "contains no dictionary that finds them in texts. Give tokenizer=None, and encode lists of words from the "
            "tokenizer of voxpop.read (encode(words, is_pretokenized=True))."
        )
    if unknown in tokens:
        raise InputError(f"{unknown!r} is itself a released token; give another token as `unknown`.")
    vocabulary = {token: number for number, token in enumerate([unknown, *tokens])}
    result: Tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token=unknown))
    result.add_special_tokens([unknown])
    normalizer, splitter = _steps(tokenizer)
    if normalizer is not None:
        result.normalizer = normalizer
    if splitter is not None:
        result.pre_tokenizer = splitter
    return result


def _steps(tokenizer: Any) -> tuple[Any, Any]:
    """Return the normalizer and the pre-tokenizer as components of the library, so that the result can be saved."""
    from tokenizers import Regex, normalizers, pre_tokenizers

    split = pre_tokenizers.Split
    if tokenizer is None:
        return None, None
    if tokenizer == "words":
        return normalizers.Sequence(_folding("words")), split(Regex(WORD), "removed", invert=True)
    if tokenizer == "whitespace":
        return None, pre_tokenizers.WhitespaceSplit()
    if tokenizer == "characters":
        steps = [split(Regex(r"\s+"), "removed"), split(Regex(r"\S"), "isolated")]
        joiners = normalizers.Replace(Regex(ANY_WITHOUT_WIDTH), "")
        return normalizers.Sequence([*_folding("characters"), joiners]), pre_tokenizers.Sequence(steps)
    if isinstance(tokenizer, re.Pattern):
        return None, split(Regex(tokenizer.pattern), "removed", invert=True)
    raise InputError(
        f"`tokenizer` must be {', '.join(TOKENIZER_NAMES)}, a compiled regular expression, or None for lists of "
        f"tokens; got {tokenizer!r}. A callable cannot become part of a tokenizer file."
    )


def to_subword_tokenizer(
    counts: "Counts", model: Subwords = "bpe", size: int = 8000, unknown: str = "[UNK]"
) -> "Tokenizer":
    """Train a Hugging Face subword tokenizer on the released words and their noisy counts.

    The tokenizer depends only on words and counts, so it has the guarantee `counts.total` and costs no budget. The
    tokenizer normalizes texts to NFC and lower case if the tokenizer of the release did so.

    Args:
        counts: The counts of a release of words.
        model: "bpe" (merges bytes and encodes every text without loss), "wordpiece" (as in BERT) or "unigram" (as in
            SentencePiece).
        size: The maximum number of subwords, which must be at least 512.
        unknown: The token for letters that occur in no released word. The model "bpe" does not use this token.

    Raises:
        InputError: If the model is unknown, `unknown` is a released word, or the library is not installed.
    """
    check_choice("model", model, SUBWORDS)
    check_whole("size", size, _LARGEST, "the largest number of subwords", _LEAST)
    if not isinstance(unknown, str) or not unknown or any(gram == (unknown,) for gram in counts.rows.each_gram()):
        raise InputError("`unknown` must be a string such as [UNK] and must not be a released word.")
    tokenizers = required("tokenizers", "this export", "tokenizers")
    result: Tokenizer
    result, trainer = _untrained(model, size, unknown)
    if counts.grams.token_source in IN_NORMAL_FORM:
        result.normalizer = tokenizers.normalizers.Sequence(_folding(counts.grams.token_source, addresses=True))
    result.train_from_iterator(_text(counts.each_gram()), trainer)
    if model == "bpe":
        # Prepend a space, so that a word has the same subwords at the start of a text as after a space. The decoder
        # removes this space.
        prepend, decoders = tokenizers.normalizers.Prepend(" "), tokenizers.decoders
        before = [] if result.normalizer is None else [result.normalizer]
        result.normalizer = tokenizers.normalizers.Sequence([*before, prepend])
        result.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return result


def _folding(reading: str, *, addresses: bool = False) -> list[Any]:
    """Return the normalizers that convert texts to NFC and lower case, as a tokenizer of `voxpop.read` does.

    Args:
        reading: The name of the tokenizer.
        addresses: Whether URLs remain in the texts.
    """
    from tokenizers import Regex, normalizers

    replace = normalizers.Replace
    visible = [replace(Regex(ANY_IGNORED), ""), replace(Regex(USELESS_JOINER), "")]
    # Python lowercases a capital sigma at the end of a word to its final form, but the library does not.
    sigma = replace(Regex(FINAL_SIGMA), "ς")
    lower = [normalizers.NFC(), sigma, normalizers.Lowercase(), replace(Regex(DOTTED_I), "i"), normalizers.NFC()]
    without = [replace(Regex(URL), " ")] if reading == "words" and not addresses else []
    apostrophes = [replace(Regex(ANY_APOSTROPHE), "'")] if reading == "words" else []
    return [*visible, *lower, *without, *apostrophes]


def _text(counts: Iterable[tuple[tuple[str, ...], int]]) -> Iterator[str]:
    """Yield each released word as often as its noisy count, but at least once. Large counts are scaled down."""
    words = [(gram[0], max(1, users)) for gram, users in counts if len(gram) == 1]
    scale = min(1.0, MOST_REPEATED / max(1, sum(users for _, users in words)))
    for word, users in words:
        yield f" {word}" * max(1, round(scale * users))


def _untrained(model: Subwords, size: int, unknown: str) -> tuple[Any, Any]:
    """Return a subword tokenizer and its trainer."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    shared: dict[str, Any] = {"vocab_size": size, "show_progress": False}
    letters: dict[str, Any] = {"special_tokens": [unknown], "initial_alphabet": VISIBLE}
    if model == "bpe":  # This model merges bytes, so every text is encoded without loss and no token is unknown.
        parts = models.BPE(), pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        trainer = trainers.BpeTrainer(**shared, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    elif model == "wordpiece":  # This model merges letters within words, as BERT does.
        parts = models.WordPiece(unk_token=unknown), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
        trainer = trainers.WordPieceTrainer(**shared, **letters)
    else:  # This model keeps the most likely pieces of words, as SentencePiece does.
        parts = models.Unigram(), pre_tokenizers.Metaspace(), decoders.Metaspace()
        trainer = trainers.UnigramTrainer(**shared, **letters, unk_token=unknown)
    result = Tokenizer(parts[0])
    result.pre_tokenizer, result.decoder = parts[1:]
    return result, trainer
