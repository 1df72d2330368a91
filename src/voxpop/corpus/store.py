"""A corpus saved: a folder of arrays to be mapped; `loading.py` reads them back."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from voxpop.arrays import Int32s, Int64s
from voxpop.corpus.engine import Arrays
from voxpop.corpus.limited.pages import forget_pages
from voxpop.errors import SourceError
from voxpop.files.folder import replace_folder_by, sync_folder

VERSION = 1
META = "corpus.json"
VOCABULARY = "vocabulary.arrow"
ARRAYS = ("tokens", "user_start", "user_key")
AT_ONCE = 1 << 20


Blocks = Iterable[tuple[Int32s, Int64s]]


def save_corpus(corpus: Arrays, folder: Path) -> None:
    """Write beside the folder, then exchange: a crash leaves the old corpus or the new one; see `Corpus.save`."""
    _save(folder, lambda fresh: _write(corpus, fresh))


def save_blocks(folder: Path, blocks: Blocks, vocabulary: pa.LargeStringArray, kind: str) -> None:
    """Save a corpus that never fits into memory, block after block.

    Args:
        folder: made or replaced.
        blocks: tokens of some users (int32, -1 after each document), and how many positions each of them has (int64).
        vocabulary: token by id, sorted by bytes.
        kind: "text", "tokens" or "sequence".

    Raises:
        SourceError: where the folder cannot be written, or holds something else.
    """
    _save(folder, lambda fresh: _write_blocks(blocks, vocabulary, kind, fresh))


def _save(folder: Path, write: Callable[[Path], None]) -> None:
    if folder.exists() and not (folder / META).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise SourceError(f"{folder} exists and is not a corpus; choose another folder.")

    def make(fresh: Path) -> None:
        fresh.mkdir(mode=0o700)
        write(fresh)
        sync_folder(fresh)

    try:
        replace_folder_by(folder.resolve(), make)
    except OSError as error:
        raise SourceError(
            f"the corpus cannot be saved to {folder}: {error.strerror or 'writing failed'}. "
            "Choose a folder you may write to, with enough space."
        ) from None


def _write(corpus: Arrays, folder: Path) -> None:
    for name in ARRAYS:
        array = getattr(corpus, name)
        with _private(folder / f"{name}.npy") as file:
            _write_header(file, array.size, array.dtype)
            for begin in range(0, array.size, AT_ONCE):
                file.write(np.ascontiguousarray(array[begin : begin + AT_ONCE]).data)
                forget_pages(array, begin, begin + AT_ONCE)
    _write_words(corpus.vocabulary, _notes(corpus), folder)


def _notes(corpus: Arrays) -> dict[str, Any]:
    notes: dict[str, Any] = {"kind": corpus.kind, "reading": corpus.reading}
    return notes | ({"keys": corpus.keys.to_list()} if corpus.keys.columns else {})


def _write_blocks(blocks: Blocks, vocabulary: pa.LargeStringArray, kind: str, folder: Path) -> None:
    """Append tokens behind a header that is written again once their number is known: numpy leaves room for that."""
    sizes = []
    with _private(folder / "tokens.npy") as file:
        _write_header(file, 0, np.int32)
        for tokens, own in blocks:
            file.write(np.ascontiguousarray(tokens, np.int32).data)
            sizes.append(own)
        user_start = np.concatenate([[0], np.cumsum(np.concatenate([np.empty(0, np.int64), *sizes]))]).astype(np.int64)
        file.seek(0)
        _write_header(file, int(user_start[-1]), np.int32)
    for name, array in (("user_start", user_start), ("user_key", np.arange(user_start.size - 1, dtype=np.uint64))):
        with _private(folder / f"{name}.npy") as file:
            np.save(file, array)
    _write_words(vocabulary, {"kind": kind}, folder)


def _write_header(file: Any, size: int, kind: Any) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False, "shape": (size,)}
    np.lib.format.write_array_header_1_0(file, header)


def _write_words(vocabulary: pa.LargeStringArray, notes: dict[str, Any], folder: Path) -> None:
    table = pa.table({"token": vocabulary})
    with _private(folder / VOCABULARY) as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    with _private(folder / META) as file:
        file.write(json.dumps({"format": "voxpop corpus", "version": VERSION, **notes}).encode())


@contextmanager
def _private(path: Path) -> Iterator[Any]:
    """Write a new file that only its owner may read, and see it on disk."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
