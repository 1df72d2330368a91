"""From a plan's public numbers to the story of its report."""

from collections.abc import Callable, Mapping
from typing import Any

from voxpop.mechanisms import load, mechanism_called
from voxpop.release.report.story import Story

Sizes = Mapping[int, int]
"""How many grams of each length were released."""


def story_of(plan: Mapping[str, Any], sizes: Sizes) -> Story:
    """Return the story of a release.

    Args:
        plan: what its plan's `to_dict` returned, also one of a loaded release.
        sizes: how many grams of each length were released.

    Returns:
        The story of its mechanism, or a general one where the numbers are not those of a mechanism of this version.
    """
    mechanism = mechanism_called(str(plan.get("mechanism")))
    if mechanism is None or mechanism.story is None:
        return general_story(plan, sizes)
    about: Callable[[Mapping[str, Any], Sizes], Story] = load(mechanism.story)
    try:
        return about(plan, sizes)
    except (KeyError, TypeError, ValueError, IndexError):
        return general_story(plan, sizes)


def general_story(plan: Mapping[str, Any], sizes: Sizes) -> Story:
    """Return what can be said of any release."""
    single = max(sizes, default=1) == 1
    noun = ("item", "items") if single else ("phrase", "phrases")
    return Story("general.html", noun, "released", str(plan.get("mechanism", "Release")))
