"""The public list of words that users do not vote for."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, final

from voxpop.errors import InputError
from voxpop.files.folder import entries_of

if TYPE_CHECKING:
    import pyarrow as pa

    from voxpop.engine.local.corpus import LocalCorpus
    from voxpop.kernels.arrays import Bools

PublicWord = str | tuple[str, ...]
"""A word or a text, or the tokens of a phrase, as in a release."""
TOKENIZERS = ("words", "whitespace", "characters")
PATTERN = "regex:"


def public_list(given: object) -> tuple[PublicWord, ...]:
    """Return the distinct entries of a public list, in canonical order.

    Args:
        given: An iterable of strings or of lists of tokens, such as a release, or the path of a text file with one
            entry per line. Empty lines are skipped.

    Raises:
        InputError: The list has the wrong type.
        SourceError: The file cannot be read.
    """
    entries: list[PublicWord] = []
    for each in entries_of(given):
        entry = tuple(each) if isinstance(each, list | tuple) else each
        if not isinstance(entry, str | tuple) or not all(isinstance(token, str) for token in entry):
            raise InputError(
                "`exclude` must be a list of strings, a release, or the path of a text file with one word per line; "
                f"it contains a value of type {type(each).__name__}."
            )
        entries.append(entry)
    try:
        "".join("".join(entry) for entry in entries).encode()
    except UnicodeEncodeError:
        raise InputError(
            "`exclude` contains a string with half of a surrogate pair, which no token has. Remove that string."
        ) from None
    return tuple(sorted(set(entries), key=_entry_text))


def _entry_text(entry: PublicWord) -> str:
    return json.dumps(entry)


@final
@dataclass(frozen=True, slots=True, repr=False)
class PublicList:
    """A public list of words. Two lists are equal if their sizes and fingerprints are equal.

    Attributes:
        size: The number of distinct entries.
        fingerprint: The SHA-256 digest of the entries in canonical order.
        words: The entries (None for the list of a saved plan, which contains only the size and the fingerprint).
    """

    size: int
    fingerprint: str
    words: tuple[PublicWord, ...] | None = field(compare=False)

    @staticmethod
    def of(given: Any) -> "PublicList":
        """Return the list for any value that `HeavyHitters.exclude` accepts.

        Raises:
            InputError: The list has the wrong type.
        """
        if isinstance(given, PublicList):
            return given
        if isinstance(given, Mapping):
            return PublicList(int(given["size"]), str(given["fingerprint"]), None)
        words = public_list(given)
        return PublicList(len(words), f"sha256:{sha256(json.dumps(words).encode()).hexdigest()}", words)

    def __repr__(self) -> str:
        return f"PublicList({self.size} words, {self.fingerprint})" if self.size else "()"

    def to_dict(self) -> dict[str, Any]:
        """Return the size and the fingerprint, ready for JSON."""
        return {"size": self.size, "fingerprint": self.fingerprint}

    def normalised(self, corpus: "LocalCorpus") -> list[tuple[str, ...]]:
        """Return the tokens of every entry, split by the tokenizer of the data.

        Entries that are lists of tokens are unchanged. Strings are also unchanged if the data are items, or if the
        tokenizer is a callable, because the data do not record callables. If the data are lists of tokens, strings are
        split at spaces.

        Raises:
            InputError: The list belongs to a saved plan, so its words are unknown.
        """
        if self.words is None:
            raise InputError(
                "the words of `exclude` are unknown, because the plan was loaded from a file. Give the list again."
            )
        texts = [entry for entry in self.words if isinstance(entry, str)]
        phrases = [entry for entry in self.words if not isinstance(entry, str)]
        return [*phrases, *_cut(texts, corpus)]


NO_WORDS = PublicList.of(())


def _cut(texts: list[str], corpus: "LocalCorpus") -> list[tuple[str, ...]]:
    reading = corpus.token_source
    if corpus.kind in ("tokens", "sequence"):
        return [tuple(text.split()) for text in texts]
    if not texts or corpus.kind == "items" or not (reading in TOKENIZERS or reading.startswith(PATTERN)):
        return [(text,) for text in texts]
    import polars as pl

    from voxpop.engine.local.read import read_here
    from voxpop.reading.wanted import Request, Tokenizer

    tokenizer: Any = re.compile(reading.removeprefix(PATTERN)) if reading.startswith(PATTERN) else reading
    # Each entry becomes the document of one user, so the normal reader tokenizes it.
    table = pl.DataFrame({"number": range(len(texts)), "text": texts})
    read = read_here(table, Request.of(user="number", text="text", tokenizer=Tokenizer(tokenizer)))
    vocabulary, ids = read.vocabulary.to_pylist(), read.tokens
    spans = zip(read.user_start[:-1].tolist(), read.user_start[1:].tolist(), strict=True)
    return [tuple(vocabulary[each] for each in ids[begin:end].tolist() if each >= 0) for begin, end in spans]


def excluded_tokens(vocabulary: "pa.LargeStringArray", listed: list[tuple[str, ...]]) -> "Bools":
    """For each token of a vocabulary, return whether a list contains it as a word.

    Args:
        vocabulary: The tokens.
        listed: The tokens of each entry of the list. Entries with several tokens match no single token.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from voxpop.reading.arrow import numbers_of, string_array

    single = string_array([entry[0] for entry in listed if len(entry) == 1])
    excluded: Bools = numbers_of(pc.is_in(vocabulary, value_set=single).cast(pa.int8())) != 0
    return excluded
