"""Conversion of checked columns to tokens.

A compiled kernel splits texts into words, and all other tokens are created from lists of strings.

Texts are split into words, lists remain unchanged, and every token becomes a number.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from html.parser import HTMLParser
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, final, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.kernels.group import lay_documents
from voxpop.kernels.threads import THREADS, in_order, require_polars
from voxpop.reading.arrow import decoded, flattened, int64_array, int_codes
from voxpop.reading.choices import TokenizerName
from voxpop.reading.columns import quieten, text_column, valid_text
from voxpop.reading.keys import is_list, is_string, value_type
from voxpop.reading.one_text import REGEX
from voxpop.reading.segmenting import ANY_IGNORED, ANY_WITHOUT_WIDTH, DOTTED_I, check_icu
from voxpop.reading.segmenting import sentences as cut_sentences
from voxpop.reading.users import Stretch
from voxpop.reading.words import WordInterner

if TYPE_CHECKING:
    import polars as pl

# A compiled kernel splits texts into words. All other tokens are created from lists of strings.

Tokenise = Callable[[pa.Array], pa.Array]
"""A function from large_string texts to large_list<large_string>, with one list per text."""

_NAMES = get_args(TokenizerName)
INVISIBLE = f"{ANY_IGNORED}|{ANY_WITHOUT_WIDTH}"


def list_tokeniser(tokenizer: Any) -> Tokenise | None:
    """Return a function from texts to lists of strings, or None for "words", which has a separate kernel.

    Args:
        tokenizer: "words" (see `voxpop.reading.segmenting`), "whitespace" (the text between white space, unchanged),
            "characters" (visible code points of the text in NFC and lower case, without white space), a compiled
            regular expression (its matches in the unchanged text), or a callable from a list of texts to a list of
            lists of strings.

    Raises:
        InputError: If the tokenizer is something else.
    """
    if isinstance(tokenizer, str) and tokenizer in _NAMES:
        return {"words": None, "whitespace": _whitespace, "characters": _characters}[tokenizer]
    if isinstance(tokenizer, re.Pattern):
        return lambda texts: _by_call(lambda batch: [_matches(tokenizer, text) for text in batch], texts)
    if callable(tokenizer):
        return lambda texts: _by_call(tokenizer, texts)
    names = ", ".join(f'"{name}"' for name in _NAMES)
    # The repr of a library's tokenizer would contain its vocabulary.
    shown = repr(tokenizer) if isinstance(tokenizer, str | int | float | None) else type(tokenizer).__name__
    if hasattr(tokenizer, "encode_batch"):
        shown += "; one of Hugging Face's is lambda texts: [each.tokens for each in tokenizer.encode_batch(texts)]"
    raise InputError(
        f"`tokenizer` must be one of {names}, a compiled regular expression (re.compile(...)), or a callable from a "
        f"list of texts to a list of lists of strings, got {shown}."
    )


def tokeniser_name(tokenizer: Any) -> str:
    """Return the name of the tokenizer in releases, or "" for a callable, which has no name."""
    if isinstance(tokenizer, re.Pattern):
        plain = isinstance(tokenizer.pattern, str) and tokenizer.flags == re.UNICODE
        return f"regex:{tokenizer.pattern}" if plain else ""
    return tokenizer if isinstance(tokenizer, str) else ""


def _whitespace(texts: pa.Array) -> pa.Array:
    import polars as pl

    require_polars()
    return _lists(pl.Series(values=texts, dtype=pl.String).str.extract_all(r"\S+"))


def _characters(texts: pa.Array) -> pa.Array:
    import polars as pl

    require_polars()
    series = pl.Series(values=texts, dtype=pl.String).str.replace_all(INVISIBLE, "").str.normalize("NFC")
    series = series.str.to_lowercase().str.replace_all(DOTTED_I, "i").str.normalize("NFC")
    return _lists(series.str.extract_all(r"\S"))


def _lists(series: "pl.Series") -> pa.Array:
    return series.to_arrow().cast(pa.large_list(pa.large_string()))


def _matches(pattern: re.Pattern[str], text: str) -> list[str]:
    return [match.group(0) for match in pattern.finditer(text) if match.group(0)]


def _by_call(tokenise: Callable[[list[str]], Any], texts: pa.Array) -> pa.Array:
    """Run a caller's tokenizer on a batch, and check the result without showing it."""
    wanted = "a list of strings for each text"
    try:
        answer = tokenise(texts.to_pylist())
    except MemoryError:  # This is not treated as a fault of the tokenizer, so the reader reports it.
        raise MemoryError("no memory was left for the tokens of some texts.") from None
    except Exception as error:
        kind = type(error).__name__
        quieten(error)
        raise InputError(
            f"the tokenizer failed with {kind}; its message may quote a text and is not shown. It is called with a "
            f"list of texts and must return {wanted}. Wrap a function that splits a single text: lambda texts: "
            "[cut(text) for text in texts]."
        ) from None
    try:
        lists = list(answer)
        unordered = {type(tokens).__name__ for tokens in lists if isinstance(tokens, str | bytes | Set | Mapping)}
        lists = [] if unordered else [list(tokens) for tokens in lists]
    except TypeError:
        raise InputError(f"the tokenizer must return {wanted}, got {type(answer).__name__}.") from None
    if unordered:  # The letters of a string would become tokens, and the order of a set differs between runs.
        raise InputError(
            f"the tokenizer must return {wanted}, got a {min(unordered)} for a text. Split it, such as "
            "lambda texts: [text.split() for text in texts]."
        )
    if len(lists) != len(texts):
        raise InputError(f"the tokenizer must return {wanted}: {len(texts)} lists, got {len(lists)}.")
    if not all(isinstance(token, str) for tokens in lists for token in tokens):
        raise InputError(f"the tokenizer must return {wanted}; some tokens have a different type.")
    try:
        return pa.array(lists, pa.large_list(pa.large_string()))
    except (UnicodeEncodeError, pa.ArrowException):
        pass
    raise InputError(f"the tokenizer must return {wanted}; some contain half of a surrogate pair.")


# Split texts into sentences, so that phrases do not extend from one sentence into the next.


def split_sentences(texts: pa.Array) -> tuple[pa.Array, Int64s]:
    """Split each text into sentences (see `voxpop.reading.segmenting`).

    Args:
        texts: Strings. Null is an empty text.

    Returns:
        large_string, the sentences of all texts, and int64 (texts + 1), the position of each text's first sentence.

    Example:
        >>> sentences, starts = split_sentences(pa.array(["Tea? Yes, please.", "No."]))
        >>> sentences.to_pylist(), starts.tolist()
        (['Tea?', 'Yes, please.', 'No.'], [0, 2, 3])
    """
    cut = [cut_sentences(text or "") for text in texts.to_pylist()]
    starts = np.cumsum([0, *map(len, cut)]).astype(np.int64)
    return pa.array([sentence for each in cut for sentence in each], pa.large_string()), starts


# Python's parser converts HTML to the text that readers see.
#
# The conversion removes tags with their attributes, comments, declarations, and the contents of `script`, `style` and
# `template`. Entities become the characters that they stand for. Tags within a line (`<b>`, `<a>`, `<span>`, ...) do
# not separate words. All other tags end the line, so that neither words nor sentences extend from one paragraph or cell
# into the next.

WITHIN_LINES: Final = frozenset(
    re.findall(
        r"\w+",
        "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr q s samp small span strike "
        "strong sub sup time tt u var wbr",
    )
)
UNSEEN: Final = frozenset(("script", "style", "template"))
MARKUP = "[<&]"
SOFT_HYPHEN = "\u00ad"
"""A possible line break within a long word. It belongs to the layout of a page, like `<wbr>`."""


def without_markup(texts: pa.Array) -> pa.Array:
    """Return HTML texts as plain text. Texts without `<` and `&` remain unchanged.

    Args:
        texts: large_string, the HTML.
    """
    marked = pc.match_substring_regex(texts, MARKUP).fill_null(False)
    if not pc.any(marked).as_py():
        return texts
    plain = [plain_text(text) for text in texts.filter(marked).to_pylist()]
    return pc.replace_with_mask(texts, marked, pa.array(plain, pa.large_string()))


def plain_text(text: str) -> str:
    r"""Return HTML as plain text.

    Example:
        >>> plain_text("<p>Tea &amp; <b>m</b>ilk<br>caf&eacute;<!-- secret --></p>")
        '\nTea & milk\ncafé\n'
    """
    parser = _Text()
    parser.feed(text)
    parser.close()
    return "".join(parser.parts).replace(SOFT_HYPHEN, "")


@final
class _Text(HTMLParser):
    """The text parsed so far."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._unseen += tag in UNSEEN
        self._end_line(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self._end_line(tag)

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in UNSEEN and self._unseen > 0
        self._end_line(tag)

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self.parts.append(data)

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """Treat `<![...` as a comment, as browsers do, because the parser stops at unsupported declarations."""
        return self.parse_bogus_comment(i)

    def _end_line(self, tag: str) -> None:
        if tag not in WITHIN_LINES:
            self.parts.append("\n")


TextBatches = Iterable[tuple[str, pa.Array]]


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """The documents of one batch.

    Attributes:
        ids: int32, provisional ids of tokens, with -1 after each document (for items one id per row, with -1 for null).
        ends: int64 (documents + 1), the end of each document's ids. Items have no ends, because they have one id per
            row.
        interner: The index of the list of words for these ids.
    """

    ids: Int32s
    ends: Int64s | None
    interner: int

    @property
    def size(self) -> int:
        """The number of bytes in memory."""
        return self.ids.nbytes + (0 if self.ends is None else self.ends.nbytes)


Encoded = tuple[list[Piece], list[pa.Array]]


def encode_by_text(stretch: Stretch, as_lists: Tokenise | None, column: str, *, sentences: bool, html: bool) -> Encoded:
    """Split texts into words, or into sentences and then words. The sentences of a text belong to its user."""
    starts: list[Int64s] = []
    if as_lists is None or sentences:
        check_icu()

    def plain_sentences() -> TextBatches:
        for where, texts in stretch:
            texts = text_column(texts, where)
            if html:
                texts = without_markup(texts)
            if sentences:
                texts, own = split_sentences(texts)
                starts.append(own)
            yield where, texts

    rows = plain_sentences() if html or sentences else stretch
    if as_lists is None:
        pieces, words = _encode_words(rows, stretch)
    else:
        lists = ((where, as_lists(text_column(texts, where).fill_null(""))) for where, texts in rows)
        pieces, words = encode_lists(lists, stretch, column, "text")
    if sentences:
        pieces = [
            Piece(p.ids, None if p.ends is None else p.ends[own], p.interner)
            for p, own in zip(pieces, starts, strict=True)
        ]
    return pieces, words


def _encode_words(rows: TextBatches, stretch: Stretch) -> Encoded:
    """Split texts into words with the kernel. Each thread has a separate interner."""
    interners = [WordInterner() for _ in range(THREADS)]
    idle: SimpleQueue[int] = SimpleQueue()
    for number in range(THREADS):
        idle.put(number)

    def cut(row: tuple[str, pa.Array]) -> Piece:
        where, texts = row
        number = idle.get()
        try:
            ids, ends = interners[number].cut(text_column(texts, where))
            return Piece(ids.copy(), ends, number)
        finally:
            idle.put(number)

    pieces, held = [], 0
    for piece in in_order(cut, rows):
        pieces.append(piece)
        held += piece.size
        stretch.hold(held + sum(interner.size for interner in interners))
    return pieces, [interner.vocabulary() for interner in interners]


def encode_lists(rows: TextBatches, stretch: Stretch, column: str, kind: str) -> Encoded:
    """Encode lists of strings or numbers, or one item per row."""

    def encode(row: tuple[str, pa.Array]) -> tuple[pa.DictionaryArray, np.ndarray | None]:
        where, values = row
        flat, starts = _flat(values, column, kind)
        return _dictionary(flat, where, column), starts

    encoded, held = [], 0
    for codes, starts in in_order(encode, rows):
        encoded.append((codes, starts))
        held += codes.nbytes + (0 if starts is None else starts.nbytes)
        # The codes count twice, because they are rewritten when the dictionaries are unified.
        stretch.hold(2 * held)
    if not encoded:
        return [], []
    whole = pa.chunked_array([codes for codes, _ in encoded]).unify_dictionaries()
    words = whole.chunk(0).dictionary
    words = words.cast(pa.large_string())
    pieces = [_piece(chunk, starts, kind) for chunk, (_, starts) in zip(whole.chunks, encoded, strict=True)]
    return pieces, [words]


def _flat(values: pa.Array, column: str, kind: str) -> tuple[pa.Array, np.ndarray | None]:
    """Return all elements of lists and the start of each list, or single items and None."""
    if is_list(values.type):
        elements, sizes = flattened(values)
        # (lists + 1,), the start of each list's elements.
        return elements, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if kind == "items" or pa.types.is_null(values.type):
        return values, None
    raise ColumnError(
        f'{kind}= needs a column of lists, got "{column}" of type {values.type}; for strings use text=, for one item '
        "per row items=, for one event per row sequence= with order=, its time."
    )


def _dictionary(flat: pa.Array, where: str, column: str) -> pa.DictionaryArray:
    """Return elements as codes of distinct strings."""
    if pa.types.is_null(flat.type):
        flat = flat.cast(pa.large_string())
    kind = value_type(flat.type)
    if not pa.types.is_integer(kind) and not is_string(kind):
        raise ColumnError(f'the column "{column}" must contain strings or whole numbers, got {kind}.')
    if not pa.types.is_dictionary(flat.type):
        flat = flat.dictionary_encode()
    words = flat.dictionary
    try:
        words = words.cast(pa.large_string()) if pa.types.is_integer(kind) else valid_text(words, where, column)
    except SourceError:  # The invalid string may belong to no row.
        flat = decoded(flat).dictionary_encode()
        words = valid_text(flat.dictionary, where, column)
    try:
        return pa.DictionaryArray.from_arrays(flat.indices.cast(pa.int32()), words)
    except (pa.ArrowIndexError, pa.ArrowInvalid) as error:  # A damaged file can have codes beyond its dictionary.
        quieten(error)
        raise SourceError(f'{where}: the column "{column}" is damaged; write the file again.') from None


def _piece(chunk: pa.DictionaryArray, starts: np.ndarray | None, kind: str) -> Piece:
    """Return one batch as a piece, with documents followed by -1, or with one item per row."""
    codes = int_codes(chunk)
    if kind == "items":
        return Piece(codes, None, 0)
    if starts is None:
        starts = np.arange(codes.size + 1, dtype=np.int64)
    ids = np.empty(codes.size + starts.size - 1, np.int32)
    ends = np.zeros(starts.size, np.int64)
    lay_documents(codes, starts, ids, ends)
    return Piece(ids[: ends[-1]], ends, 0)


def single_tokens(reading: str) -> Callable[[pa.LargeStringArray], pa.LargeStringArray]:
    """Return a function that maps texts to the tokens of those texts that have exactly one token."""
    as_lists = list_tokeniser(re.compile(reading.removeprefix(REGEX)) if reading.startswith(REGEX) else reading)

    def of_lists(texts: pa.LargeStringArray, cut: Any = as_lists) -> pa.LargeStringArray:
        lists = cut(texts)
        return lists.filter(pc.equal(pc.list_value_length(lists), 1)).flatten().cast(pa.large_string())

    def of_words(texts: pa.LargeStringArray) -> pa.LargeStringArray:
        interner = WordInterner()
        ids, ends = interner.cut(texts)
        # The numbers of each text end with -1, so a text with a single token has two numbers.
        starts, sizes = ends[:-1], np.diff(ends)
        return interner.vocabulary().take(int64_array(ids[starts[sizes == 2]]))

    if as_lists is None:
        check_icu()
        return of_words
    return of_lists
