"""A model on disk: grams, alphabet, record and report in a folder, whole or not at all."""

import os
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from voxpop.arrow import array_of, lists_of, numbers_of, plain, string_array
from voxpop.errors import InputError, ReleaseError
from voxpop.files.folder import folder_to_read
from voxpop.privacy.guarantee import Guarantee
from voxpop.release.about import About
from voxpop.release.grams import read_parquet, write_parquet
from voxpop.release.record import ABOUT, DAMAGED, MODEL_RECORD, about_entry, checksum, parsed_record, record_bytes
from voxpop.release.saving import already_there, holds, may_write, target_folder, write_whole
from voxpop.release.stored_plan import StoredPlan

if TYPE_CHECKING:
    from voxpop.sequences.context_tree import ContextTree
    from voxpop.sequences.model import SequenceModel
    from voxpop.sequences.tree import Tree

FORMAT = "voxpop sequence model"
FORMAT_VERSION = 2
RECORD, GRAMS, ALPHABET = MODEL_RECORD, "grams.parquet", "alphabet.parquet"
REPORT = "report.html"
REPLACEABLE = frozenset({RECORD, GRAMS, ALPHABET, REPORT, "synthetic.parquet"})


def save_model(
    model: "SequenceModel",
    folder: str | PathLike[str],
    extra: dict[str, bytes] | None = None,
    *,
    overwrite: bool = False,
) -> None:
    """Write the files of a model, and others beside them; see `SequenceModel.save`."""
    from voxpop.sequences.reporting import report_of_model

    files = {GRAMS: _grams(model), ALPHABET: _alphabet(model), **(extra or {})}
    files[RECORD] = _record(model, files)
    replace = overwrite or holds(folder, RECORD, files[RECORD])
    target = check_model_target(folder, overwrite=replace)
    files[REPORT] = report_of_model(model, {name: checksum(content) for name, content in files.items()})
    write_whole(target, files, folder, "model", replace=replace)


def check_model_target(folder: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Return the absolute path of a folder that a model can be saved to, before anything is spent.

    Raises:
        ReleaseError: if it is a file, holds a model and `overwrite` is not set, or holds anything else.
    """
    target = target_folder(folder, "model")
    source = folder_to_read(target)
    names = set(os.listdir(source)) if source.exists() else set()
    if names and (RECORD not in names or names - REPLACEABLE):
        raise ReleaseError(f"{folder} holds files and is not just a model, so it is not replaced. Give a new folder.")
    if names and not overwrite:
        raise already_there(folder, "a model")
    nearest = next(each for each in (target.parent, *target.parent.parents) if each.exists())
    if not nearest.is_dir() or not may_write(nearest, target.name):
        raise ReleaseError(f"{folder} cannot be written: you may not write in {nearest}. Give another folder.")
    return target


def load_model(folder: str | PathLike[str], make: "type[SequenceModel]") -> "SequenceModel":
    """Read the files of a model; see `SequenceModel.load`."""
    source = folder_to_read(Path(folder))
    record = _parsed(_read(source, RECORD, folder), folder)
    contents = {name: _read(source, name, folder) for name in (GRAMS, ALPHABET)}
    for name, content in contents.items():
        if checksum(content) != record.get("checksums", {}).get(name):
            raise ReleaseError(f"{folder}: {name} is not the file that was saved, its checksum differs. {DAMAGED}")
    try:
        return _model(record, contents, make)
    except (InputError, KeyError, TypeError, ValueError, IndexError, pa.ArrowException) as error:
        raise ReleaseError(f"{folder} was changed after it was saved. {DAMAGED}") from error


def _model(record: dict[str, Any], contents: dict[str, bytes], make: "type[SequenceModel]") -> "SequenceModel":

    words = read_parquet(contents[ALPHABET])["symbol"].to_pylist()
    table = read_parquet(contents[GRAMS])
    contexts = record["counts"] == "contexts"
    tree = _contexts(record, len(words) + 1, table) if contexts else _tree(record, len(words) + 1, table)
    guarantee = Guarantee.from_dict(record["guarantee"])
    about = About.from_dict(dict(record.get(ABOUT, {})))
    return make(tuple(words), tree, int(record["max_length"]), StoredPlan(dict(record["plan"])), guarantee, about)


def _contexts(record: dict[str, Any], width: int, table: pa.Table) -> "ContextTree":
    from voxpop.sequences.context_table import context_tree_of

    columns = {name: plain(table[name]) for name in ("parent", "before", "scale", "counts")}
    counts = columns["counts"].cast(pa.list_(pa.int64()))
    if (numbers_of(counts.value_lengths()) != width).any():
        raise ValueError("not one count of each symbol")
    parents, before, scales = (numbers_of(columns[name]) for name in ("parent", "before", "scale"))
    return context_tree_of(width, int(record["max_length"]), parents, before, scales, numbers_of(counts.flatten()))


def _tree(record: dict[str, Any], width: int, table: pa.Table) -> "Tree":
    from voxpop.sequences.table import tree_of

    columns = {name: plain(table[name]) for name in ("symbols", "ends", "count", "scale")}
    symbols = columns["symbols"].cast(pa.list_(pa.int64()))
    return tree_of(
        width,
        numbers_of(symbols.flatten()),
        numbers_of(symbols.value_lengths()).astype("int64"),
        numbers_of(columns["ends"].cast(pa.int64())),
        numbers_of(columns["count"]),
        numbers_of(columns["scale"]),
        bool(record["balanced"]),
    )


def _grams(model: "SequenceModel") -> bytes:
    """Return the grams as numbers of symbols, which a spelling that holds anything cannot disturb."""
    import numpy as np

    from voxpop.sequences.context_table import context_columns
    from voxpop.sequences.table import gram_symbols
    from voxpop.sequences.tree import Tree

    tree = model.tree
    if not isinstance(tree, Tree):
        return write_parquet(context_columns(tree))
    symbols, sizes = gram_symbols(tree)
    lists = lists_of(array_of(symbols.astype(np.int32)), sizes)
    scales = np.repeat(tree.scales, np.diff(tree.starts))
    columns = {"ends": tree.symbols == tree.width - 1, "count": tree.counts, "scale": scales}
    return write_parquet(pa.table({"symbols": lists} | {name: array_of(values) for name, values in columns.items()}))


def _alphabet(model: "SequenceModel") -> bytes:
    return write_parquet(pa.table({"symbol": string_array(model.alphabet).cast(pa.string())}))


def _record(model: "SequenceModel", files: dict[str, bytes]) -> bytes:
    from voxpop.sequences.tree import Tree

    content = {
        **about_entry(model.about),
        "statement": str(model.guarantee),
        "guarantee": model.guarantee.to_dict(),
        "max_length": model.max_length,
        **(
            {"counts": "grams", "balanced": model.tree.balanced}
            if isinstance(model.tree, Tree)
            else {"counts": "contexts"}
        ),
        "plan": model.plan.to_dict(),
        "checksums": {name: checksum(content) for name, content in files.items()},
    }
    return record_bytes(FORMAT, FORMAT_VERSION, content)


def _parsed(content: bytes, folder: str | PathLike[str]) -> dict[str, Any]:
    otherwise = f"{folder} is not a sequence model that voxpop wrote."
    parsed = parsed_record(content, f"{folder}: {RECORD}", FORMAT, otherwise)
    if parsed.get("format_version") != FORMAT_VERSION:
        raise ReleaseError(f"{folder} was written by another version of voxpop; use that one, or a newer one.")
    return parsed


def _read(source: Path, name: str, folder: str | PathLike[str]) -> bytes:
    try:
        return (source / name).read_bytes()
    except OSError as error:
        raise ReleaseError(
            f"{folder} is not a sequence model: {name} cannot be read. Give the folder that `model.save(folder)` or "
            "`voxpop sequences -o` made."
        ) from error
