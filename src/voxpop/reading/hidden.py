"""Files in a folder or pattern that are not part of a table, such as hidden and temporary files.

The rule for names is the same as in Spark and pyarrow. In every folder below the caller's folder, names that begin with
a dot or an underscore are skipped, except for partition folders such as `_year=2026`. Temporary names, such as those of
editors, downloads and copies, are skipped as well. A path that the caller writes in full is always read. Tables that
list their files in a log raise an error.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from glob import has_magic
from itertools import takewhile
from pathlib import Path
from typing import Final

from voxpop.errors import SourceError

PREFIXES: Final = (".", "_", "~$", "#")
"""The prefixes of hidden files, of lock files of office software, and of copies that Emacs saves."""
ENDINGS: Final = (
    "~",
    "#",
    "._copying_",
    *(
        ".aria2",
        ".bak",
        ".crc",
        ".crdownload",
        ".download",
        ".filepart",
        ".in-progress",
        ".inprogress",
        ".lck",
        ".lock",
    ),
    *(".lock", ".old", ".opdownload", ".orig", ".part", ".partial", ".pending", ".swo", ".swp", ".temp", ".tmp"),
)
"""The suffixes of temporary names, in lower case."""
SKIPPED_NAMES: Final = (
    "with hidden or temporary names (such as _temporary, ._a.csv, a.csv.tmp) were skipped. To read one, give its path."
)
LOGS: Final = {
    "_delta_log": ("Delta", 'polars.read_delta("{}")'),
    "metadata/*.metadata.json": ("Iceberg", 'polars.scan_iceberg("{}/metadata/....metadata.json").collect()'),
    ".hoodie": ("Hudi", 'spark.read.format("hudi").load("{}")'),
    "_spark_metadata": ("Spark streaming", 'spark.read.parquet("{}")'),
}
"""The name of a format and the call that reads its current rows, by a pattern that only tables of this format
contain."""


def is_hidden(name: str) -> bool:
    """Return whether a file or folder of this name is skipped.

    Example:
        >>> [is_hidden(name) for name in ("_temporary", "._a.csv", "a.csv.part", "_year=2026", "part-0.csv")]
        [True, True, True, False, False]
    """
    partition = "=" in name and not name.startswith(".")
    return not partition and (name.startswith(PREFIXES) or name.lower().endswith(ENDINGS))


def root_of(pattern: str) -> Path:
    """Return the folders of a path up to the first one with a wildcard."""
    return Path(*takewhile(lambda part: not has_magic(part), Path(pattern).parts))


def visible(files: Iterable[Path], named: Path, root: Path) -> list[Path]:
    """Return the files that are not hidden in the folders below the caller's folder.

    Args:
        files: The files of a folder or pattern.
        named: The folder or pattern. A part of a pattern that begins like a hidden name, such as `_*`, matches hidden
            names.
        root: The part of the pattern without wildcards.
    """
    literal = [part for part in named.parts[len(root.parts) :] if is_hidden(part)]
    return [
        file
        for file in files
        if not any(
            is_hidden(part) and not any(fnmatchcase(part, pattern) for pattern in literal)
            for part in file.relative_to(root).parts
        )
    ]


def check_no_log(folders: Iterable[Path]) -> None:
    """Raise an error for folders of a table that lists its files in a log.

    Files that the log does not list contain removed rows, or rows that are not yet valid.

    Args:
        folders: Folders with files of a source. All folders above them are checked too.

    Raises:
        SourceError: If one of the folders contains a Delta, Iceberg or Hudi table, or the output of a Spark stream.
    """
    seen: set[Path] = set()
    for folder in folders:
        for each in (folder, *folder.parents):
            if each in seen:
                break
            seen.add(each)
            for pattern, (name, call) in LOGS.items():
                if _contains(each, pattern):
                    raise SourceError(log_message(name, call.format(each)))


def log_message(name: str, call: str) -> str:
    """Return the error for a table that lists its files in a log."""
    return (
        f"the folder is a table of {name}. Its log lists the current files; other files contain removed rows. Read it "
        f"in Python with vp.read({call}, user=...)."
    )


def _contains(folder: Path, pattern: str) -> bool:
    try:
        return any(folder.glob(pattern)) if has_magic(pattern) else (folder / pattern).exists()
    except OSError:
        return False
