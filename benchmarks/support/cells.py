"""Results kept cell by cell, so that a long benchmark may be interrupted and goes on where it was."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.support.common import RESULTS

Key = tuple[str, ...]


class Cells:
    """A CSV of cells: what was measured, then its numbers, one line a cell; later lines replace earlier ones.

    Args:
        name: of the file, `{name}_cells.csv` in the folder of results.
        again: words; cells whose key has one of them are measured anew.
    """

    def __init__(self, name: str, again: Sequence[str] = ()) -> None:
        self._path: Path = RESULTS / f"{name}_cells.csv"
        self._known: dict[Key, list[float]] = {}
        if self._path.exists():
            with self._path.open() as lines:
                for key, numbers in csv.reader(lines):
                    self._known[tuple(key.split(" | "))] = [float(number) for number in numbers.split()]
        self._known = {key: kept for key, kept in self._known.items() if not set(key) & set(again)}
        self._write()

    def get(self, key: Sequence[object], measure: Callable[[], Sequence[float]]) -> list[float]:
        """Return the numbers of a cell, measured now if they are not known."""
        name = tuple(str(part) for part in key)
        if name not in self._known:
            self._known[name] = [float(number) for number in measure()]
            print(" | ".join(name), *(f"{number:g}" for number in self._known[name]), flush=True)
            self._write()
        return self._known[name]

    def _write(self) -> None:
        RESULTS.mkdir(exist_ok=True)
        with self._path.open("w", newline="") as lines:
            writer = csv.writer(lines, lineterminator="\n")
            for key, numbers in self._known.items():
                writer.writerow([" | ".join(key), " ".join(f"{number:.10g}" for number in numbers)])
