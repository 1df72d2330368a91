"""Measurements saved cell by cell, so that an interrupted benchmark continues with the next cell."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

Key = tuple[str, ...]


class Cells:
    """A CSV file with the commit of the measurements, followed by one line per cell with its key and its numbers.

    Args:
        path: The path of the file.
        commit: The current commit.
        is_old: A function that returns whether the code has changed since a commit. If it has, the cells are discarded.
    """

    def __init__(self, path: Path, commit: str, is_old: Callable[[str], bool]) -> None:
        self._path, self._commit = path, commit
        self._known: dict[Key, list[float]] = {}
        if path.exists():
            with path.open(newline="") as lines:
                [[measured_at], *kept] = csv.reader(lines)
            if not is_old(measured_at):
                self._commit = measured_at
                self._known = {tuple(key.split(" | ")): list(map(float, each.split())) for key, each in kept}

    def get(self, key: Sequence[object], measure: Callable[[], Sequence[float]]) -> list[float]:
        """Return the numbers of a cell, and measure them first if the file does not contain them."""
        name = tuple(str(part) for part in key)
        if name not in self._known:
            self._known[name] = [float(number) for number in measure()]
            print(" | ".join(name), *(f"{number:g}" for number in self._known[name]), flush=True)
            self._write()
        return self._known[name]

    def _write(self) -> None:
        """Write all cells to a new file, and replace the old file with it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        with new.open("w", newline="") as lines:
            writer = csv.writer(lines, lineterminator="\n")
            writer.writerow([self._commit])
            for key, numbers in self._known.items():
                writer.writerow([" | ".join(key), " ".join(f"{number:.10g}" for number in numbers)])
        new.replace(self._path)
