"""The table of mechanisms. The command line, plans, reports and audits are derived from this table.

This file contains only names. The named objects are imported when needed, so this file imports no other module.
"""

from importlib import import_module
from typing import Any, NamedTuple


class Registered(NamedTuple):
    """A mechanism. The properties return the location of each part as `module:name`, which depends on the package.

    Attributes:
        command: The name of the mechanism on the command line and in audits.
        name: The name of the mechanism in the plan of a saved release: `to_dict()["mechanism"]`.
        package: The folder of the mechanism in `voxpop.mechanisms`.
        kind: The name of the public configuration class.
        told: Whether reports about the mechanism have special content.
        audited: Whether the mechanism has an audit case.
    """

    command: str
    name: str
    package: str
    kind: str
    told: bool = False
    audited: bool = True

    @property
    def config(self) -> str:
        """Its public configuration."""
        return f"voxpop.mechanisms.{self.package}.mechanism:{self.kind}"

    @property
    def describe(self) -> str:
        """The function that returns the text of a plan from its public numbers and its guarantee in words."""
        return f"voxpop.mechanisms.{self.package}.describe:describe"

    @property
    def story(self) -> str | None:
        """The function that returns the content of a report from the numbers of a plan and the sizes of a release."""
        return f"voxpop.mechanisms.{self.package}.describe:story" if self.told else None

    @property
    def audit(self) -> str | None:
        """The function that returns the audit case of the mechanism."""
        return f"voxpop.testing.cases:{self.command.replace('-', '_')}" if self.audited else None


MECHANISMS = (
    Registered("items", "items", "set_union", "Items", told=True),
    Registered("ngrams", "n-grams", "ngrams", "NGrams", told=True),
    Registered("heavy-hitters", "heavy hitters", "heavy_hitters", "HeavyHitters", told=True),
    Registered("sequences", "sequences", "sequences", "Sequences"),
    Registered("profile", "profile", "profile", "ProfileMechanism", told=True),
    Registered("keys", "keys", "profile", "KeyCounts", told=True),
    Registered("count", "counts", "counts", "CountsMechanism", audited=False),
    Registered("top", "top", "counts", "TopMechanism"),
)


def mechanism_called(name: str) -> Registered | None:
    """Return the mechanism that a plan names, or None if it is not in the registry."""
    return next((each for each in MECHANISMS if each.name == name), None)


def configuration(name: str) -> Any:
    """Return the public configuration class with this name in plans."""
    (place,) = (each.config for each in MECHANISMS if each.name == name)
    return load_object(place)


def load_object(place: str) -> Any:
    """Return the object that `module:name` refers to."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
