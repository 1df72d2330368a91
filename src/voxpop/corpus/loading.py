"""A saved corpus mapped back into memory."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from voxpop.corpus.corpus import Corpus
from voxpop.corpus.limited.memory import MemoryLimit
from voxpop.corpus.store import ARRAYS, META, VERSION, VOCABULARY
from voxpop.errors import SourceError
from voxpop.files.folder import folder_to_read

TYPES = {"tokens": np.int32, "user_start": np.int64, "user_key": np.uint64}


def load_corpus(
    folder: str | Path, *, memory: str | int | None = None, work_folder: str | os.PathLike[str] | None = None
) -> Corpus:
    """Map a saved corpus into memory.

    Args:
        folder: where `Corpus.save` put it.
        memory: the most that the process may hold while it extracts; see `voxpop.read`.
        work_folder: where work files are made then.

    Returns:
        The corpus; pages are read as they are needed.

    Raises:
        SourceError: where there is no corpus, or one of another version, or a damaged one.

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
    try:
        arrays = {name: np.load(path / f"{name}.npy", mmap_mode="r") for name in ARRAYS}
        with pa.memory_map(str(path / VOCABULARY)) as source:
            vocabulary = pa.ipc.open_file(source).read_all().column("token").combine_chunks()
    except (OSError, ValueError, EOFError, pa.ArrowInvalid, KeyError):
        raise _damaged(path) from None
    kind, reading = str(meta.get("kind")), str(meta.get("reading", ""))
    corpus = Corpus(**arrays, vocabulary=_large(vocabulary), kind=kind, reading=reading, limit=limit)
    if not _fits(corpus):
        raise _damaged(path)
    return corpus


def _large(vocabulary: pa.Array) -> pa.LargeStringArray:
    if isinstance(vocabulary, pa.ChunkedArray):
        return pa.concat_arrays(vocabulary.chunks) if vocabulary.num_chunks else pa.nulls(0, pa.large_string())
    return vocabulary


def _meta(path: Path) -> dict[str, Any]:
    try:
        meta = json.loads((path / META).read_bytes())
    except OSError:
        raise SourceError(f"{path} is not a saved corpus: it has no {META}. Save one with corpus.save(...).") from None
    except ValueError:
        raise _damaged(path) from None
    if not isinstance(meta, dict) or meta.get("version") != VERSION:
        raise SourceError(f"{path} was saved by another version of voxpop; read the source again and save it.")
    return meta


def _fits(corpus: Corpus) -> bool:
    """Tell whether types and sizes belong together."""
    typed = all(getattr(corpus, name).dtype == TYPES[name] and getattr(corpus, name).ndim == 1 for name in ARRAYS)
    starts = corpus.user_start
    return typed and starts.size == corpus.user_key.size + 1 and starts[0] == 0 and starts[-1] == corpus.tokens.size


def _damaged(path: Path) -> SourceError:
    return SourceError(f"{path} holds a damaged corpus; read the source again and save it anew.")
