"""The formats by name, as `voxpop export --format` and `Release.write` know them."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from voxpop.arguments import check_choice
from voxpop.choices import SUBWORDS
from voxpop.errors import InputError
from voxpop.release.exports import files

if TYPE_CHECKING:
    from voxpop.release.released import Released

SUFFIXES = {
    ".txt": "text",
    ".json": "json",
    ".csv": "csv",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".parquet": "parquet",
    ".sql": "sql",
}


def format_of(path: Path) -> str:
    """Return the format that a file's name asks for.

    Raises:
        InputError: where its ending says nothing.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"{path.name} does not say which format it is. Name the format, one of {', '.join(FORMATS)}, or end the "
            f"name in {', '.join(SUFFIXES)}."
        )
    return SUFFIXES[path.suffix.lower()]


def contents(release: "Released", name: str, tokenizer: Any = "words", dialect: str = "duckdb") -> bytes:
    """Return a release in a format.

    Args:
        release: what was released.
        name: one of `FORMATS`.
        tokenizer: how texts are cut, for formats that keep it.
        dialect: of "sql".

    Raises:
        InputError: for another format, or where the release does not fit it.
    """
    if name in SUBWORDS:
        raise InputError(f'"{name}" is trained on counts: count the release first, and write the counts (Tally.write).')
    check_choice("format", name, tuple(FORMATS))
    if name == "sql":
        from voxpop.release.exports.sql import sql_of

        columns = None if release.keys is None or release.keys.columns else "word"
        return f"{sql_of(release, dialect, 'select', columns)}\n".encode()
    return FORMATS[name](release, tokenizer)


def _vocabulary(release: "Released", _: Any) -> bytes:
    from voxpop.release.exports.joining import joined

    grams = joined(release, " ", "a vocabulary")
    numbers = {gram: number for number, gram in enumerate(grams)}
    return (json.dumps(numbers, ensure_ascii=False, indent=0) + "\n").encode()


def _tokenizer(release: "Released", tokenizer: Any) -> bytes:
    from voxpop.release.exports.word_level import word_level

    text: str = word_level(release, tokenizer).to_str(pretty=True)
    return text.encode()


def _spacy(release: "Released", _: Any) -> bytes:
    from voxpop.release.exports.phrase_matcher import entity_patterns

    return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in entity_patterns(release)).encode()


def _gensim(release: "Released", _: Any) -> bytes:
    from voxpop.release.exports.gensim_phrases import gensim_phrases

    phrases = gensim_phrases(release)
    with tempfile.TemporaryDirectory() as folder:
        phrases.save(str(Path(folder, "phrases")))
        return Path(folder, "phrases").read_bytes()


FORMATS: dict[str, Callable[["Released", Any], bytes]] = {
    "text": lambda release, _: files.as_text(release),
    "json": lambda release, _: files.as_json(release),
    "csv": lambda release, _: files.as_csv(release),
    "arrow": lambda release, _: files.as_arrow(release),
    "parquet": lambda release, _: files.as_parquet(release),
    "vocabulary": _vocabulary,
    "tokenizer": _tokenizer,
    "spacy": _spacy,
    "gensim": _gensim,
    "sql": lambda release, _: contents(release, "sql"),
}
