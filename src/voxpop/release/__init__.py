"""The public side: what was released, and how it is kept.

Nothing in this package has seen a corpus. `Release` and `load` are imported when first used, because they need pyarrow.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voxpop.release.loading import load
    from voxpop.release.release import Release

__all__ = ["Release", "load"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name == "Release":
        from voxpop.release.release import Release

        return Release
    if name == "load":
        from voxpop.release.loading import load

        return load
    raise AttributeError(f"module 'voxpop.release' has no attribute {name!r}")
