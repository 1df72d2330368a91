"""The story of a model of sequences."""

from collections.abc import Mapping, Sequence
from typing import Any

from voxpop.release.report.story import Grid, Story
from voxpop.release.report.words import plain, whole

Scales = Mapping[int, tuple[float, float]]
"""The least and greatest scale of the noise on counts, by length of gram."""


def about_sequences(
    plan: Mapping[str, Any], sizes: Mapping[int, int], scales: Scales, end: str, sessions: Mapping[str, Any]
) -> Story:
    """Return the story of a model from its plan's numbers.

    Args:
        plan: what its plan's `to_dict` returned.
        sizes: how many grams of each length were released.
        scales: of the noise on their counts.
        end: how the page writes the end of a sequence.
        sessions: how they go, or nothing.
    """
    return Story(
        words="sequences.html",
        noun=("gram", "grams"),
        title="with noisy counts",
        kicker="A model of sequences",
        proof="docs/privacy/sequences.md",
        values={
            "max_length": plan.get("max_length"),
            "alphabet_size": plan.get("alphabet_size"),
            "sample": plan.get("combine") == "sample",
            "scale": plain(plan.get("scale")),
            "end": end,
            "contexts": plan.get("counts") == "contexts",
            "found": plain(plan["epsilon_to_find"]) if "epsilon_to_find" in plan else "",
        },
        sessions=sessions,
        grids=[_noise(sizes, scales)],
        completes=False,
    )


def _noise(sizes: Mapping[int, int], scales: Scales) -> Grid:
    rows: list[Sequence[str]] = [
        [str(length), whole(count), plain(scales[length][0]), plain(scales[length][1])]
        for length, count in sorted(sizes.items())
    ]
    return Grid(
        "Noise on the counts",
        ["length", "grams", "least scale", "greatest scale"],
        rows,
        "Integer Laplace noise of scale b has a standard deviation of about 1.4 b. Longer grams get what is left of "
        "epsilon where they are counted, and what follows longer contexts is noisier.",
    )
