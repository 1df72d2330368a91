"""The mechanisms, each registered once: command line, plans, reports and audits follow from this table.

Only names stand here. What they name is imported when it is wanted, so this file stands below everything.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple


class Mechanism(NamedTuple):
    """Where everything about a mechanism is, as `module:name`.

    Attributes:
        command: what the command line and audits call it.
        name: what the plan of a saved release calls it: `to_dict()["mechanism"]`.
        config: its public configuration.
        cli: the module of its command: a function of the command's name, and `Options` and `Spend`, by which
            `voxpop plan` makes a plan.
        story: what its report tells: from a plan's numbers and the sizes of a release.
        audit: its worst cases.
        holders: beside a probability, what its plan's `holders` is asked where nothing was released.
    """

    command: str
    name: str
    config: str
    cli: str
    story: str | None = None
    audit: str | None = None
    holders: Mapping[str, int] = {}


MECHANISMS = (
    Mechanism(
        "items",
        "set union",
        "voxpop.union.set_union:SetUnion",
        "voxpop.cli.items",
        "voxpop.release.report.about_union:about_union",
        "voxpop.testing.audit.all_union_cases:all_union_cases",
        {"items": 10},
    ),
    Mechanism(
        "ngrams",
        "n-grams",
        "voxpop.ngrams.ngrams:NGrams",
        "voxpop.cli.ngrams",
        "voxpop.release.report.about_ngrams:about_ngrams",
        "voxpop.testing.audit.votes_cases:all_ngrams_cases",
        {"length": 1},
    ),
    Mechanism(
        "hitters",
        "heavy hitters",
        "voxpop.hitters.heavy_hitters:HeavyHitters",
        "voxpop.cli.hitters",
        "voxpop.release.report.about_hitters:about_hitters",
        "voxpop.testing.audit.hitters_cases:hitters_cases",
    ),
    Mechanism(
        "sequences",
        "sequences",
        "voxpop.sequences.sequences:Sequences",
        "voxpop.cli.sequences",
        audit="voxpop.testing.audit.sequences_cases:sequences_cases",
    ),
    Mechanism("count", "counts", "voxpop.counts.counts:Counts", "voxpop.cli.count"),
    Mechanism(
        "top", "top", "voxpop.counts.top:Top", "voxpop.cli.top", audit="voxpop.testing.audit.top_cases:top_cases"
    ),
)


def mechanism_called(name: str) -> Mechanism | None:
    """Return the mechanism that a plan names, or None where it is none of ours."""
    return next((each for each in MECHANISMS if each.name == name), None)


def configuration(name: str) -> Any:
    """Return the public configuration that plans call so: a class of ours."""
    (place,) = (each.config for each in MECHANISMS if each.name == name)
    return load(place)


def load(place: str) -> Any:
    """Return what `module:name` says."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
