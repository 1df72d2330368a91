"""The mechanisms, each registered once: command line, plans, reports and audits follow from this table.

This file contains only names. The named objects are imported when needed, so this file is below all other modules.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple


class Mechanism(NamedTuple):
    """Where everything about a mechanism is, as `module:name`.

    Attributes:
        command: its name on the command line and in audits.
        name: its name in the plan of a saved release: `to_dict()["mechanism"]`.
        config: its public configuration.
        describe: the function from the public numbers of a plan, and its guarantee in words, to the text of the plan.
        story: the content of its report, from a plan's numbers and the sizes of a release.
        audit: its audit case.
        users_needed: arguments of the plan's `users_needed`, in addition to a probability, for the report of an empty
            release.
    """

    command: str
    name: str
    config: str
    describe: str
    story: str | None = None
    audit: str | None = None
    users_needed: Mapping[str, int] = {}


MECHANISMS = (
    Mechanism(
        "items",
        "set union",
        "voxpop.mechanisms.set_union.mechanism:SetUnion",
        "voxpop.mechanisms.set_union.describe:describe",
        "voxpop.mechanisms.set_union.describe:about_union",
        "voxpop.testing.cases:items",
        {"per_user": 10},
    ),
    Mechanism(
        "ngrams",
        "n-grams",
        "voxpop.mechanisms.ngrams.mechanism:NGrams",
        "voxpop.mechanisms.ngrams.describe:describe",
        "voxpop.mechanisms.ngrams.describe:about_ngrams",
        "voxpop.testing.cases:ngrams",
    ),
    Mechanism(
        "hitters",
        "heavy hitters",
        "voxpop.mechanisms.heavy_hitters.mechanism:HeavyHitters",
        "voxpop.mechanisms.heavy_hitters.describe:describe",
        "voxpop.release.report.page:about_hitters",
        "voxpop.testing.cases:hitters",
    ),
    Mechanism(
        "sequences",
        "sequences",
        "voxpop.mechanisms.sequences.mechanism:Sequences",
        "voxpop.mechanisms.sequences.describe:describe",
        audit="voxpop.testing.cases:sequences",
    ),
    Mechanism(
        "count",
        "counts",
        "voxpop.mechanisms.counts.mechanism:Counts",
        "voxpop.mechanisms.counts.describe:describe_counts",
    ),
    Mechanism(
        "top",
        "top",
        "voxpop.mechanisms.counts.mechanism:Top",
        "voxpop.mechanisms.counts.describe:describe_top",
        audit="voxpop.testing.cases:top",
    ),
)


def mechanism_called(name: str) -> Mechanism | None:
    """Return the mechanism that a plan names, or None if it is not in the registry."""
    return next((each for each in MECHANISMS if each.name == name), None)


def configuration(name: str) -> Any:
    """Return the public configuration class with this name in plans."""
    (place,) = (each.config for each in MECHANISMS if each.name == name)
    return load(place)


def load(place: str) -> Any:
    """Return the object that `module:name` refers to."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
