"""The public side: what was released, and how it is kept.

Nothing in this package has seen a corpus. `Release` is imported when first used, because it needs pyarrow.

| file | holds |
|---|---|
| `completing.py` | what comes next |
| `exports/` | a release in the forms that other software reads |
| `grams.py` | the table of a release |
| `record.py` | `release.json` |
| `release.py` | what may leave the building |
| `report/` | `report.html` |
| `saving.py` | save a release |
| `stored_plan.py` | the plan of a release that was loaded |
| `tally.py` | about how many users hold each gram of a release |
| `additions.py` | counts and rankings on disk, beside their release |
| `trie.py` | the grams of a release as a tree of beginnings, in arrays |
| `about.py` | what the operator says of a release |
| `ranking.py` | the grams of a release that most users hold, in order |
| `stated.py` | what an operator can state something about before it is saved |
| `prompt.py` | cut what somebody types as the texts of a release were cut, without the private side's kernels |
| `released.py` | what may be asked of something released |
| `stored_release.py` | read the files of a saved release, checking that they are whole |
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voxpop.release.release import Release

__all__ = ["Release"]


if not TYPE_CHECKING:  # type checkers know the names from above, and refuse all others

    def __getattr__(name: str) -> Any:
        """Import a public name on first use."""
        if name == "Release":
            from voxpop.release.release import Release

            return Release
        raise AttributeError(f"module 'voxpop.release' has no attribute {name!r}")
