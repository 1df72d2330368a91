"""From a column of text to tokens: words by a kernel, everything else through lists of strings."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa

from voxpop.choices import TokenizerName
from voxpop.corpus.reading.failures import quieten
from voxpop.errors import InputError
from voxpop.segmenting import check_installed, unicode_words

if TYPE_CHECKING:
    import polars as pl

Tokenise = Callable[[pa.Array], pa.Array]
"""From large_string texts to large_list<large_string>, one list per text."""

NAMES = get_args(TokenizerName)


def list_tokeniser(tokenizer: Any) -> Tokenise | None:
    """Return how to turn texts into lists of strings, or None for "words", which has a kernel of its own.

    Args:
        tokenizer: "words" (NFC, lower case, URLs removed; runs of letters, marks and digits, with apostrophes inside),
            "unicode" (words, numbers and emoji as ICU cuts them; needs icu4py), "whitespace" (what stands between white
            space, as it is), "characters" (code points of the text in NFC and lower case, white space left out), a
            compiled regular expression (its matches in the text as it is), or a callable from a list of texts to a list
            of lists of strings.

    Raises:
        InputError: for anything else.
    """
    if isinstance(tokenizer, str) and tokenizer == "unicode":
        check_installed()
        return _unicode
    if isinstance(tokenizer, str) and tokenizer in NAMES:
        return {"words": None, "whitespace": _whitespace, "characters": _characters}[tokenizer]
    if isinstance(tokenizer, re.Pattern):
        return lambda texts: _by_call(lambda batch: [_matches(tokenizer, text) for text in batch], texts)
    if callable(tokenizer):
        return lambda texts: _by_call(tokenizer, texts)
    names = ", ".join(f'"{name}"' for name in NAMES)
    # A tokenizer of a library prints its vocabulary.
    shown = repr(tokenizer) if isinstance(tokenizer, str | int | float | None) else type(tokenizer).__name__
    if hasattr(tokenizer, "encode_batch"):
        shown += "; one of Hugging Face's is lambda texts: [each.tokens for each in tokenizer.encode_batch(texts)]"
    raise InputError(
        f"`tokenizer` must be one of {names}, a compiled regular expression (re.compile(...)), or a callable from a "
        f"list of texts to a list of lists of strings, got {shown}."
    )


def tokeniser_name(tokenizer: Any) -> str:
    """Return how a release names the tokeniser that its texts were cut by: "" where only its caller knows it."""
    if isinstance(tokenizer, re.Pattern):
        plain = isinstance(tokenizer.pattern, str) and tokenizer.flags == re.UNICODE
        return f"regex:{tokenizer.pattern}" if plain else ""
    return tokenizer if isinstance(tokenizer, str) else ""


def _unicode(texts: pa.Array) -> pa.Array:
    return pa.array([unicode_words(text) for text in texts.to_pylist()], pa.large_list(pa.large_string()))


def _whitespace(texts: pa.Array) -> pa.Array:
    import polars as pl

    return _lists(pl.Series(values=texts, dtype=pl.String).str.extract_all(r"\S+"))


def _characters(texts: pa.Array) -> pa.Array:
    import polars as pl

    series = pl.Series(values=texts, dtype=pl.String).str.normalize("NFC").str.to_lowercase().str.normalize("NFC")
    return _lists(series.str.extract_all(r"\S"))


def _lists(series: "pl.Series") -> pa.Array:
    return series.to_arrow().cast(pa.large_list(pa.large_string()))


def _matches(pattern: re.Pattern[str], text: str) -> list[str]:
    return [match.group(0) for match in pattern.finditer(text) if match.group(0)]


def _by_call(tokenise: Callable[[list[str]], Any], texts: pa.Array) -> pa.Array:
    """Run a caller's tokeniser on a batch, and check what comes back without showing it."""
    wanted = "a list of strings for each text"
    try:
        answer = tokenise(texts.to_pylist())
    except MemoryError:  # not the tokenizer's fault: who reads says what to do
        raise MemoryError("no memory was left for the tokens of some texts.") from None
    except Exception as error:
        kind = type(error).__name__
        quieten(error)
        raise InputError(
            f"the tokenizer failed with {kind}; what it said may quote a text, and is left out. It is called with a "
            f"list of texts and returns {wanted}; one that cuts a single text is given as "
            "lambda texts: [cut(text) for text in texts]."
        ) from None
    try:
        lists = [list(tokens) for tokens in answer]
    except TypeError:
        raise InputError(f"the tokenizer must return {wanted}, got {type(answer).__name__}.") from None
    if len(lists) != len(texts):
        raise InputError(f"the tokenizer must return {wanted}: {len(texts)} lists, got {len(lists)}.")
    if not all(isinstance(token, str) for tokens in lists for token in tokens):
        raise InputError(f"the tokenizer must return {wanted}; some tokens are of another type.")
    return pa.array(lists, pa.large_list(pa.large_string()))
