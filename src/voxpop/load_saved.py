"""Load what was saved: a release, or a model of sequences."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from voxpop.files.folder import folder_to_read
from voxpop.release.record import MODEL_RECORD
from voxpop.release.release import Release
from voxpop.release.stored_release import load_release

if TYPE_CHECKING:
    from voxpop.sequences.model import SequenceModel


def load(folder: str | PathLike[str]) -> "Release | SequenceModel":
    """Load what `Release.save` or `SequenceModel.save` saved.

    Args:
        folder: where it was saved.

    Returns:
        The release or the model. Its plan shows the numbers that ran, and cannot run again.

    Raises:
        ReleaseError: if the folder is neither, is damaged, or was saved in a format this version cannot read.

    Example:
        >>> import tempfile
        >>> import pyarrow as pa
        >>> import voxpop as vp
        >>> from voxpop.release.stored_plan import StoredPlan
        >>> words = vp.Release.from_items(pa.array(["tea"]), StoredPlan({"sigma": 1.2}), vp.Guarantee(4, 1e-7))
        >>> with tempfile.TemporaryDirectory() as here:
        ...     words.save(f"{here}/words")
        ...     again = vp.load(f"{here}/words")
        >>> again == words, again.plan.sigma
        (True, 1.2)
    """
    if (folder_to_read(Path(folder)) / MODEL_RECORD).is_file():
        from voxpop.sequences.model import SequenceModel

        return SequenceModel.load(folder)
    return load_release(folder)
