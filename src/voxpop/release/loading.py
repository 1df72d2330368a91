"""Load a saved result, after a check of its files."""

from os import PathLike
from typing import TypeVar, overload

from voxpop.errors import ReleaseError
from voxpop.release.result import Result
from voxpop.release.saving import RELEASE, kind_in

Kind = TypeVar("Kind", bound=Result)


@overload
def load(folder: str | PathLike[str]) -> Result: ...
@overload
def load(folder: str | PathLike[str], kind: type[Kind]) -> Kind: ...
def load(folder: str | PathLike[str], kind: type[Result] = Result) -> Result:
    """Load a saved result: a release, a model of sequences, a profile, or the counts or the ranking of a release.

    Args:
        folder: the folder that `save` wrote.
        kind: the class of the result: `vp.Tally` or `vp.Ranking` for the counts or the ranking of a release. By default
            the result in the folder; `vp.Release`, `vp.SequenceModel` and `vp.Profile` require one of them.

    Returns:
        The result. Its plan contains the numbers that ran and cannot run again.

    Raises:
        ReleaseError: If the folder contains no such result, is damaged, or has a format that this version cannot read.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import voxpop as vp
        >>> from voxpop.release.result import StoredPlan
        >>> words = vp.Release.from_items(pa.array(["tea"]), StoredPlan({"sigma": 1.2}), vp.Guarantee(4, 1e-7))
        >>> with tempfile.TemporaryDirectory() as here:
        ...     words.save(f"{here}/words")
        ...     again = vp.load(f"{here}/words", vp.Release)
        >>> again == words, again.plan.sigma
        (True, 1.2)
    """
    found: Result = (kind._saved_as or kind_in(folder) or RELEASE).load(folder)
    if not isinstance(found, kind):
        raise ReleaseError(
            f"{folder} contains a {type(found).__name__}, not a {kind.__name__}. Load it without a kind, "
            "or give another folder."
        )
    return found
