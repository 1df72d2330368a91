"""The two axes of set union, weighting and noise, and which of their cells are sound."""

from typing import Final

from voxpop.errors import InputError, UnsoundError
from voxpop.privacy.threshold import NORMS as NORMS
from voxpop.weighting.additive import Count, Weighted
from voxpop.weighting.descent import L1Descent, L2Descent
from voxpop.weighting.own import OwnSharing, Weighting
from voxpop.weighting.sharing import Sharing

SHARINGS: Final[dict[str, Sharing]] = {
    sharing.name: sharing for sharing in (Count(), Weighted(), L1Descent(), L2Descent())
}


def sound_sharing(weighting: str | Weighting, noise: str) -> Sharing:
    """Return the weighting's rule, or refuse the cell with the reason.

    Raises:
        InputError: for a name that is none of ours.
        UnsoundError: for a cell without a proof.
    """
    if noise not in NORMS:
        raise InputError(f"`noise` must be one of {_quoted(NORMS)}, got {noise!r}.")
    sharing = _sharing(weighting)
    reason = sharing.refusal(NORMS[noise])
    if reason:
        raise UnsoundError(f"{sharing.name} weighting with {noise} noise is refused: {reason}. Use {_sound_choices()}.")
    return sharing


def _sharing(weighting: str | Weighting) -> Sharing:
    if isinstance(weighting, Weighting):
        return OwnSharing(weighting)
    if isinstance(weighting, str) and weighting in SHARINGS:
        return SHARINGS[weighting]
    raise InputError(
        f"`weighting` must be one of {_quoted(SHARINGS)} or an object of a class derived from voxpop.Weighting, "
        f"got {weighting!r}."
    )


def _sound_choices() -> str:
    cells = [
        f"{sharing.name} with {noise}"
        for sharing in SHARINGS.values()
        for noise, norm in NORMS.items()
        if sharing.refusal(norm) is None
    ]
    return ", ".join(cells[:-1]) + f" or {cells[-1]}"


def _quoted(names: dict[str, int] | dict[str, Sharing]) -> str:
    return ", ".join(f'"{name}"' for name in names)
