"""From a plan's public numbers to the story of its report."""

from collections.abc import Callable, Mapping
from typing import Any

from voxpop.release.report.about_hitters import about_hitters
from voxpop.release.report.about_ngrams import about_ngrams
from voxpop.release.report.about_union import about_union
from voxpop.release.report.story import Story

Sizes = Mapping[int, int]
"""How many grams of each length were released."""

ABOUT: dict[str, Callable[[Mapping[str, Any], Sizes], Story]] = {
    "set union": about_union,
    "n-grams": about_ngrams,
    "heavy hitters": about_hitters,
}


def story_of(plan: Mapping[str, Any], sizes: Sizes) -> Story:
    """Return the story of a release.

    Args:
        plan: what its plan's `to_dict` returned, also one of a loaded release.
        sizes: how many grams of each length were released.

    Returns:
        The story of its mechanism, or a general one where the numbers are not those of a mechanism of this version.
    """
    about = ABOUT.get(str(plan.get("mechanism")))
    if about is None:
        return general_story(plan, sizes)
    try:
        return about(plan, sizes)
    except (KeyError, TypeError, ValueError, IndexError):
        return general_story(plan, sizes)


def general_story(plan: Mapping[str, Any], sizes: Sizes) -> Story:
    """Return what can be said of any release."""
    single = max(sizes, default=1) == 1
    noun = ("item", "items") if single else ("phrase", "phrases")
    return Story("general.html", noun, "released", str(plan.get("mechanism", "Release")))
