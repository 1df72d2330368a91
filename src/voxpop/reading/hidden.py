"""Files of a folder or pattern that are no part of a table: hidden and temporary names, and tables with a log of files.

The rule for names is that of Spark and pyarrow: names that begin with a dot or an underscore are skipped, in every
folder below the one that the caller names, except folders of partitions such as `_year=2026`. Temporary names of
editors, downloads and copies are skipped as well. A path that the caller writes in full is read.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from glob import has_magic
from itertools import takewhile
from pathlib import Path
from typing import Final

from voxpop.errors import SourceError

PREFIXES: Final = (".", "_", "~$", "#")
"""Of hidden names, of lock files of office software, and of copies that Emacs saves."""
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
"""Of temporary names, in lower case."""
SKIPPED_NAMES: Final = (
    "with hidden or temporary names (such as _temporary, ._a.csv, a.csv.tmp) were skipped. To read one, give its path."
)
LOGS: Final = {
    "_delta_log": ("Delta", 'polars.read_delta("{}")'),
    "metadata/*.metadata.json": ("Iceberg", 'polars.scan_iceberg("{}/metadata/....metadata.json").collect()'),
    ".hoodie": ("Hudi", 'spark.read.format("hudi").load("{}")'),
    "_spark_metadata": ("Spark streaming", 'spark.read.parquet("{}")'),
}
"""By a pattern that only such a table contains: the name of the format, and the call that reads the current rows."""


def is_hidden(name: str) -> bool:
    """Return whether a file or folder of this name is skipped.

    Example:
        >>> [is_hidden(name) for name in ("_temporary", "._a.csv", "a.csv.part", "_year=2026", "part-0.csv")]
        [True, True, True, False, False]
    """
    partition = "=" in name and not name.startswith(".")
    return not partition and (name.startswith(PREFIXES) or name.lower().endswith(ENDINGS))


def root_of(pattern: str) -> Path:
    """Return the folders of a path up to the first with a wildcard."""
    return Path(*takewhile(lambda part: not has_magic(part), Path(pattern).parts))


def visible(files: Iterable[Path], named: Path, root: Path) -> list[Path]:
    """Return the files that are not hidden below the folders that the caller names.

    Args:
        files: the files of a folder or pattern.
        named: the folder or pattern. A part of a pattern that begins like a hidden name, as `_*`, matches such names.
        root: the part of it without wildcards.
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
    """Refuse folders of a table whose log lists its files: others are removed rows, or rows that do not count yet.

    Args:
        folders: folders with files of a source; the folders that contain them are checked too.

    Raises:
        SourceError: if one of them is a table of Delta, Iceberg or Hudi, or of a stream of Spark.
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
    """Return the error for a table with a log."""
    return (
        f"the folder is a table of {name}, whose log lists the files that count; the others contain removed rows. Read "
        f"it in Python with vp.read({call}, user=...)."
    )


def _contains(folder: Path, pattern: str) -> bool:
    try:
        return any(folder.glob(pattern)) if has_magic(pattern) else (folder / pattern).exists()
    except OSError:
        return False
