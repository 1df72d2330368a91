"""A corpus in memory, which stores the tokens of each user as integers, and its folder of arrays on disk."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.contract import Engine, Shares, elsewhere
from voxpop.engine.data import Corpus
from voxpop.engine.local.length_walk import MemoryLengthWalk
from voxpop.engine.local.nights import NightlyPools, require_memory
from voxpop.engine.local.pools import BYTES_OF_ITEM, Pools
from voxpop.engine.local.tree_walk import MemoryTreeWalk
from voxpop.engine.local.weigh import (
    TOKENS_AT_ONCE,
    Histogram,
    Holdings,
    distinct_sets,
    in_weighing_order,
    user_spans,
    weigh,
    weighing_order,
)
from voxpop.errors import SourceError
from voxpop.files.folder import folder_to_read, parsed_json, read_whole, replace_folder_by, sync
from voxpop.kernels.arrays import Int32s, Int64s, Uint64s
from voxpop.kernels.sequences import count_documents, cut_sequences
from voxpop.privacy.secret import Source
from voxpop.reading.arrow import int64_array, numbers_of, string_array
from voxpop.reading.keys import NO_KEYS, Keys
from voxpop.reading.limited.memory import MemoryLimit, forget_pages, stored
from voxpop.reading.typed_keys import TypedKeys, column_numbers

if TYPE_CHECKING:
    from voxpop.engine.local.nights import NightlyPools

CELLS_AT_ONCE = 1 << 22
"""The number of cells in a table of users and token classes. The table takes 32 MiB."""


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class LocalCorpus:
    """The encoded data of the users, which is private and never part of a release.

    Attributes:
        tokens: int32, the id of every token, with -1 after each document. Items have no order and therefore no -1.
        user_start: int64 (users + 1), the first position of each user's tokens.
        user_key: uint64 (users), a function of the user's id only. The key determines the user's random draws.
        vocabulary: large_string, the token of each id, sorted by UTF-8 bytes so that ids do not depend on the order of
            the input.
        kind: "text", "tokens", "items" or "sequence".
        token_source: The origin of the tokens, which is public. For texts, it is the tokenizer ("words", "whitespace",
            "characters", "regex:PATTERN"). Otherwise it is the kind, or "" if it is unknown.
        keys: The columns of the items, which are public like the schema; empty for words.
        limit: The memory limit for work on the corpus; None for unlimited memory.
        families: The family of the ids in each user column, such as "whole numbers". The family is public like the
            schema, and "" if the source declares no type.
        alike: The private number of users with an id that differs from another id only in case or in spaces at its
            ends, or None if this number is unknown.
    """

    tokens: Int32s
    user_start: Int64s
    user_key: Uint64s
    vocabulary: pa.LargeStringArray
    kind: str
    token_source: str = ""
    keys: Keys = NO_KEYS
    limit: MemoryLimit | None = None
    families: dict[str, str] = field(default_factory=dict)
    alike: int | None = None

    def within(self, limit: MemoryLimit | None) -> "LocalCorpus":
        """Return the same corpus with a memory limit for work on it."""
        return replace(self, limit=limit)

    def weigh(
        self,
        weighting: Shares,
        limit: int,
        secret: Source,
        pass_name: str = "length 1",
        order: str | None = None,
    ) -> Histogram:
        """Add each user's contributions to at most `limit` distinct items, by default in the order of the pass."""
        holdings = self.holdings(secret, pass_name if order is None else order, ordered=weighting.sequential)
        return weigh(holdings, weighting, limit, None, secret, pass_name)

    def holdings(self, secret: Source, pass_name: str, *, ordered: bool) -> Holdings:
        """Return the users' items. If the order matters, users are in the order of weighing in the pass."""
        users, order = (self.tokens, self.user_start, self.user_key), None
        if ordered and self.limit is None:
            # A single pass reads users in place, because moving them would take longer.
            order = weighing_order(self.user_key, secret, pass_name)
        elif ordered:
            users = in_weighing_order(*users, self.limit, secret, pass_name)
        return Holdings(*users, len(self.vocabulary), limit=self.limit, words=self.vocabulary, order=order)

    def tree_walk(
        self, alphabet: tuple[str, ...], max_length: int, secret: Source, other: str | None = None
    ) -> "MemoryTreeWalk":
        """Return the walk that counts one sequence per user; see `MemoryTreeWalk`."""
        # Each step takes 12 bytes. There are at most as many steps as tokens and ends, and at most as many as all
        # sequences can have.
        short = self.tokens.size < self.user_key.size * max_length
        need = {"per_token": 16, "per_user": 76} if short else {"per_token": 4, "per_user": 76 + 12 * max_length}
        self.require("the sequences of all users", **need, per_word=64)
        symbols = one_sequence_each(self, alphabet, max_length, secret, other)
        return MemoryTreeWalk(symbols, len(alphabet), max_length)

    def outside(self, alphabet: tuple[str, ...]) -> int:
        """Return the number of tokens that are not symbols of an alphabet. This number is private."""
        known = numbers_of(pc.is_in(self.vocabulary, value_set=string_array(alphabet)).cast(pa.uint8())) > 0
        if known.all():
            return 0
        # The array is indexed by token, with one more entry for the ends of documents, which are -1.
        others = np.append(~known, False)
        spans = user_spans(self.user_start, TOKENS_AT_ONCE)
        return sum(
            int(others[self.tokens[self.user_start[first] : self.user_start[stop]]].sum()) for first, stop in spans
        )

    def pools(self, secret: Source) -> Pools:
        """Return every user's distinct items for adaptive rounds."""
        return Pools(self, secret)

    def only(self, keys: TypedKeys, listed: pa.LargeStringArray | None) -> "LocalCorpus":
        """Return the same users with their single keys, or with the joint keys of listed values."""
        # Every list needs 8 bytes per user for each of two stages and, for each word, twice the bytes of its text and
        # score.
        text = self.vocabulary.nbytes // max(1, len(self.vocabulary))
        self.require("the keys of a profile", per_token=0, per_user=16, per_word=BYTES_OF_ITEM + 2 * text)
        chosen = keys.chosen(self.vocabulary, listed)
        if chosen.all():
            return self
        # int32 (tokens + 1), the new id of each token. The last entry is for the end of a row, -1.
        ids = np.append(np.where(chosen, np.cumsum(chosen) - 1, -1), -1).astype(np.int32)
        starts = np.zeros(self.user_start.size, np.int64)

        def parts() -> Iterator[Int32s]:
            for first, stop in user_spans(self.user_start, TOKENS_AT_ONCE):
                begin, end = int(self.user_start[first]), int(self.user_start[stop])
                tokens = ids[self.tokens[begin:end]]
                before = np.concatenate([[0], np.cumsum(tokens >= 0)])
                starts[first + 1 : stop + 1] = starts[first] + before[self.user_start[first + 1 : stop + 1] - begin]
                yield tokens[tokens >= 0]
                forget_pages(self.tokens, begin, end)

        vocabulary = self.vocabulary.take(int64_array(np.flatnonzero(chosen)))
        kept = stored(parts(), self.limit)
        return replace(self, tokens=kept, user_start=starts, vocabulary=vocabulary, kind="items")

    def with_more(self, items: int) -> "LocalCorpus":
        """Return only the users with more than a given number of distinct items."""
        self.require("the users of more keys", per_token=0, per_user=32, per_word=8)
        holdings = Holdings(self.tokens, self.user_start, self.user_key, len(self.vocabulary), limit=self.limit)
        sizes = distinct_sets(holdings, None, lambda _, starts, __: np.diff(starts))
        kept = np.concatenate([np.empty(0, np.int64), *sizes]) > items
        starts = np.concatenate([[0], np.cumsum(np.diff(self.user_start)[kept])]).astype(np.int64)

        def parts() -> Iterator[Int32s]:
            for first, stop in user_spans(self.user_start, TOKENS_AT_ONCE):
                begin, end = int(self.user_start[first]), int(self.user_start[stop])
                mine = np.repeat(kept[first:stop], np.diff(self.user_start[first : stop + 1]))
                yield self.tokens[begin:end][mine]
                forget_pages(self.tokens, begin, end)

        tokens = stored(parts(), self.limit)
        return replace(self, tokens=tokens, user_start=starts, user_key=self.user_key[kept])

    def row_shares(self, listed: pa.LargeStringArray, columns: int, unit: int) -> Histogram:
        """Add up, by column, each user's shares of keys that are on a public list and of all other keys."""
        column = column_numbers(self.vocabulary, columns)
        known = numbers_of(pc.is_in(self.vocabulary, value_set=listed).cast(pa.int8()))
        # int64 (tokens + 1), the class of each token. Joint keys and the end of a row (-1) are in the last class.
        width = 2 * columns + 1
        classes = np.append(np.where(column < 0, 2 * columns, 2 * column + (known == 0)), 2 * columns).astype(np.int64)
        total = np.zeros((columns, 2), np.int64)
        for first, stop in user_spans(self.user_start, max(1, CELLS_AT_ONCE // width)):
            begin, end = int(self.user_start[first]), int(self.user_start[stop])
            users = np.repeat(np.arange(stop - first), np.diff(self.user_start[first : stop + 1]))
            cells = users * width + classes[self.tokens[begin:end]]
            counts = np.bincount(cells, minlength=(stop - first) * width).reshape(-1, width)[:, :-1]
            counts = counts.reshape(-1, columns, 2)
            whole = counts.sum(axis=2, keepdims=True)
            # This is the only query that counts repeated keys. Each share is rounded down.
            total += (counts * unit // np.maximum(whole, 1)).sum(axis=0)
            forget_pages(self.tokens, begin, end)
        return Histogram(np.arange(total.size), total.reshape(-1))

    def nights(self, state: Any, secret: Source, *, first: bool) -> "NightlyPools":
        """Return the private state of a series, in memory; see `Engine.nights`."""
        if not isinstance(state, NightlyPools):
            raise elsewhere("on Spark")
        require_memory(self, state)
        return state

    def gathered(self) -> "LocalCorpus":
        """Return this corpus, because all its users are in arrays on this machine."""
        return self

    def require(self, what: str, *, per_token: int, per_user: int, per_word: int) -> None:
        """Reject work that would exceed the memory limit, if there is one.

        Args:
            what: A plural noun for the objects that need the memory.
            per_token: The peak number of bytes per token.
            per_user: The peak number of bytes per user.
            per_word: The peak number of bytes per distinct token.

        Raises:
            MemoryLimitError: The work needs more memory. The message gives a sufficient limit.
        """
        if self.limit is not None:
            # The size is an upper bound on the peak memory, in bytes.
            size = per_token * self.tokens.size + per_user * self.user_key.size + per_word * len(self.vocabulary)
            self.limit.require(size, what)

    def length_walk(self) -> MemoryLengthWalk:
        """Return the walk from words to grams of increasing length."""
        return MemoryLengthWalk(
            self.tokens,
            self.user_start,
            self.user_key,
            len(self.vocabulary),
            words=self.vocabulary,
            limit=self.limit,
            ordered=self.kind != "items",
        )

    def save(self, folder: str | Path) -> None:
        """Save the data to a folder, so that texts are tokenized only once.

        `voxpop.load_corpus` maps the folder back into memory.

        Args:
            folder: The folder, which is created or replaced. Only its owner may read it, because it contains the
                private data.

        Raises:
            SourceError: The folder cannot be written, or it contains other files.
        """
        place = Path(folder)
        if place.exists() and not (place / META).is_file() and (not place.is_dir() or any(place.iterdir())):
            raise SourceError(f"{folder} exists and is not a corpus; choose another folder.")
        try:
            replace_folder_by(place.resolve(), lambda fresh: _write_corpus(self, fresh))
        except OSError as error:
            raise SourceError(
                f"the corpus cannot be saved to {folder}: {error.strerror or 'writing failed'}. "
                "Choose a folder you may write to, with enough space."
            ) from None


_VERSION = 1
META = "corpus.json"
VOCABULARY = "vocabulary.arrow"
ARRAYS = {"tokens": np.int32, "user_start": np.int64, "user_key": np.uint64}
_SAVED_AT_ONCE = 1 << 20


def _write_corpus(corpus: LocalCorpus, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    for name in ARRAYS:
        array = getattr(corpus, name)
        with _private(folder / f"{name}.npy") as file:
            np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
            for begin in range(0, array.size, _SAVED_AT_ONCE):
                file.write(np.ascontiguousarray(array[begin : begin + _SAVED_AT_ONCE]).data)
                forget_pages(array, begin, begin + _SAVED_AT_ONCE)
    table = pa.table({"token": corpus.vocabulary})
    with _private(folder / VOCABULARY) as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    meta = {"format": "voxpop corpus", "version": _VERSION, "kind": corpus.kind, "token_source": corpus.token_source}
    with _private(folder / META) as file:
        file.write(
            json.dumps(
                {**meta, "keys": corpus.keys.to_list(), "families": corpus.families, "alike": corpus.alike}
            ).encode()
        )
    sync(folder)


@contextmanager
def _private(path: Path) -> Iterator[Any]:
    """Write a new file that only its owner may read, and sync it to disk."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


# The code below maps a saved corpus back into memory.


def load_corpus(
    folder: str | Path, *, memory: str | int | None = None, work_folder: str | os.PathLike[str] | None = None
) -> Corpus:
    """Map a saved corpus into memory.

    Args:
        folder: The folder that `Corpus.save` wrote.
        memory: The memory limit of the process during releases; see `voxpop.read`.
        work_folder: The folder for work files under a memory limit.

    Returns:
        The corpus. The pages of the corpus are read from disk when they are needed.

    Raises:
        SourceError: The folder contains no corpus, a corpus from a different version, or a damaged corpus.

    Example:
        >>> import polars as pl, tempfile
        >>> import voxpop as vp
        >>> corpus = vp.read(pl.DataFrame({"who": [1], "text": ["good morning"]}), user="who", text="text")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     corpus.save(folder + "/morning")
        ...     vp.load_corpus(folder + "/morning")
        Corpus(kind='text', private)
    """
    limit = None if memory is None else MemoryLimit.of(memory, work_folder)
    path = folder_to_read(Path(folder))
    meta = _meta(path)
    if not all((path / name).is_file() for name in (*(f"{name}.npy" for name in ARRAYS), VOCABULARY)):
        raise _damaged(path)
    try:
        arrays = {name: np.load(path / f"{name}.npy", mmap_mode="r") for name in ARRAYS}
        with pa.memory_map(str(path / VOCABULARY)) as source:
            table = pa.ipc.open_file(source).read_all()
        vocabulary = pa.concat_arrays([pa.array([], pa.large_string()), *table.column("token").chunks])
        keys, families = Keys.from_list(meta.get("keys", [])), dict(meta.get("families", {}))
        alike = None if meta.get("alike") is None else int(meta["alike"])
    except Exception:  # the files can have any content
        raise _damaged(path) from None
    kind, token_source = str(meta.get("kind")), str(meta.get("token_source", ""))
    corpus = LocalCorpus(
        **arrays,
        vocabulary=vocabulary,
        kind=kind,
        token_source=token_source,
        keys=keys,
        limit=limit,
        families=families,
        alike=alike,
    )
    if not _fits(corpus):
        raise _damaged(path)
    return Corpus(corpus)


def _meta(path: Path) -> dict[str, Any]:
    try:
        meta = parsed_json(read_whole(path / META))
    except OSError:
        raise SourceError(
            f"{path} is not a saved corpus, because it has no {META}. Save one with corpus.save(...)."
        ) from None
    except ValueError:
        raise _damaged(path) from None
    if not isinstance(meta, dict) or meta.get("version") != _VERSION:
        raise SourceError(f"{path} was saved by another version of voxpop; read the source again and save it.")
    return meta


def _fits(corpus: LocalCorpus) -> bool:
    """Check whether types and sizes are consistent."""
    typed = all(
        getattr(corpus, name).dtype == kind and getattr(corpus, name).ndim == 1 for name, kind in ARRAYS.items()
    )
    starts = corpus.user_start
    return typed and starts.size == corpus.user_key.size + 1 and starts[0] == 0 and starts[-1] == corpus.tokens.size


def _damaged(path: Path) -> SourceError:
    return SourceError(f"{path} contains a damaged corpus; read the source again and save it again.")


def one_sequence_each(
    corpus: LocalCorpus, alphabet: tuple[str, ...], max_length: int, secret: Source | None, other: str | None = None
) -> Int32s:
    """Return one sequence per user, each followed by the end mark. The result is private.

    A user's sequence is a function of the user's own documents, the alphabet and the secret. Tokens outside the
    alphabet are removed, or replaced by the symbol `other`, before sequences are counted or cut.

    Args:
        corpus: The private data.
        alphabet: The distinct symbols, which are public.
        max_length: The maximum number of symbols per user.
        secret: The source of the draw of one document per user. If None, the documents are joined, for comparisons.
        other: The symbol of the alphabet that replaces all other tokens, or None to remove them.

    Returns:
        int32, the indices of symbols in the alphabet, with `len(alphabet)` after each sequence. Users without a symbol
        are absent.
    """
    # int32 by token, the index of its symbol, or -1 if the token is outside the alphabet. The alphabet is public, so
    # this array reveals nothing. The array is copied, because kernels would be compiled again for a read-only array.
    names = numbers_of(pc.index_in(corpus.vocabulary, value_set=string_array(alphabet)), missing=-1).astype(np.int32)
    if other is not None:
        names[names < 0] = alphabet.index(other)
    chosen = np.full(corpus.user_key.size, -1, np.int64)
    if secret is not None:
        documents = np.zeros(corpus.user_key.size, np.int64)
        count_documents(corpus.tokens, corpus.user_start, names, documents)
        # A user with only one document that contains a symbol needs no draw.
        several = np.flatnonzero(documents > 1)
        draws = secret.draws("sequences/sample", corpus.user_key[several], 0)[:, 0] >> np.uint64(32)
        chosen[:] = 0
        # floor(draw * documents / 2^32) is uniform up to 2^-32. The proof requires only that the choice does not depend
        # on other users.
        chosen[several] = ((draws * documents[several].astype(np.uint64)) >> np.uint64(32)).astype(np.int64)
    # Shape (users,), with 1 added for the end mark.
    sizes = np.minimum(np.diff(corpus.user_start), max_length) + 1
    symbols = np.empty(int(sizes.sum()), np.int32)
    end = len(alphabet)
    size = cut_sequences(corpus.tokens, corpus.user_start, names, chosen, max_length, end, symbols)
    return symbols[:size]


if TYPE_CHECKING:
    _contract: type[Engine] = LocalCorpus
