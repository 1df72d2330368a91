"""The two axes of set union, weighting and noise, and which of their cells are sound."""

from typing import Final

from voxpop.errors import InputError, UnsoundError
from voxpop.privacy.threshold import NORMS as NORMS
from voxpop.weighting.additive import Count, Weighted
from voxpop.weighting.descent import L1Descent, L2Descent
from voxpop.weighting.own import CustomRule, Weighting
from voxpop.weighting.rule import WeightingRule

WEIGHTING_RULES: Final[dict[str, WeightingRule]] = {
    weighting_rule.name: weighting_rule for weighting_rule in (Count(), Weighted(), L1Descent(), L2Descent())
}


def sound_rule(weighting: str | Weighting, noise: str) -> WeightingRule:
    """Return the weighting's rule, or refuse the cell with the reason.

    Raises:
        InputError: for a name that is none of ours.
        UnsoundError: for a cell without a proof.
    """
    if noise not in NORMS:
        raise InputError(f"`noise` must be one of {_quoted(NORMS)}, got {noise!r}.")
    weighting_rule = _sharing(weighting)
    reason = weighting_rule.refusal(NORMS[noise])
    if reason is not None:
        raise UnsoundError(
            f"{weighting_rule.name} weighting with {noise} noise is refused: {reason}. Use {_sound_choices()}."
        )
    return weighting_rule


def _sharing(weighting: str | Weighting) -> WeightingRule:
    if isinstance(weighting, Weighting):
        # Its proof is its author's; what can be checked is checked at every call.
        return CustomRule(weighting)
    if isinstance(weighting, str) and weighting in WEIGHTING_RULES:
        return WEIGHTING_RULES[weighting]
    raise InputError(
        f"`weighting` must be one of {_quoted(WEIGHTING_RULES)} or an object of a class derived from voxpop.Weighting, "
        f"got {weighting!r}."
    )


def _sound_choices() -> str:
    cells = [
        f"{weighting_rule.name} with {noise}"
        for weighting_rule in WEIGHTING_RULES.values()
        for noise, norm in NORMS.items()
        if weighting_rule.refusal(norm) is None
    ]
    return ", ".join(cells[:-1]) + f" or {cells[-1]}"


def _quoted(names: dict[str, int] | dict[str, WeightingRule]) -> str:
    return ", ".join(f'"{name}"' for name in names)
