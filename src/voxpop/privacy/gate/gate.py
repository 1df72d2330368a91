"""The common part of all gates: one certificate, one secret, ordered passes that run once, and the transcript."""

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar, final

import numpy as np

from voxpop.errors import InternalError
from voxpop.kernels.arrays import Floats, Int64s
from voxpop.kernels.proved import proved
from voxpop.privacy.joint import ROUNDING
from voxpop.privacy.parameters import KnownLevels, NightLevels
from voxpop.privacy.passes import Certificate, Proof
from voxpop.privacy.secret import Secret
from voxpop.privacy.stated import Stated

AnyProof = TypeVar("AnyProof", bound=Stated)


def refused(what: str) -> InternalError:
    """Build the error for a step that the certificate does not contain or does not cover."""
    return InternalError(f"{what}, so nothing was read")


class Gate(Generic[AnyProof]):
    """One release under one certificate.

    Args:
        text: The certificate of a checked plan, as JSON.
        secret: The secret for all draws and noise of this release.
    """

    _proves: ClassVar[type[Any]]
    proof: AnyProof

    def __init__(self, text: str, secret: Secret) -> None:
        certificate = Certificate.from_dict(json.loads(text))
        if not isinstance(certificate.proof, self._proves):
            raise refused("a release has the certificate of another mechanism")
        self._claim = certificate.claim
        self.proof: AnyProof = certificate.proof
        self._secret = secret
        self._ran: set[str] = set()
        self._transcript: list[dict[str, Any]] = []

    @final
    def _begin(self, name: str, *before: str) -> None:
        """Check that a pass has not run and that the passes `before` it have run, because no draw may be used twice."""
        if name in self._ran or not self._ran.issuperset(before):
            raise refused("a pass would run twice, or out of order")
        self._ran.add(name)

    @final
    def _note(self, kind: str, numbers: Mapping[str, Any] | None = None) -> None:
        """Add a pass to the transcript. Its numbers come from the certificate or depend only on released results."""
        self._transcript.append({"pass": kind, **(numbers or {})})

    @property
    def record(self) -> tuple[str, str]:
        """The certificate (with the entry that was chosen privately) and the transcript, as JSON."""
        proof: Proof = self.proof  # type: ignore[assignment]
        return Certificate(self._claim, proof).to_json(), json.dumps(self._transcript, sort_keys=True, allow_nan=False)


@proved("known.md#the-mechanism")
def empty_by_level(known: KnownLevels | NightLevels) -> Floats:
    """Return N p_l, a bound on the expected number of listed items without users that reach each level.

    Proof: "The listed items of level l or higher are released for the lowest level l with N p_l <= eta R_l."
    """
    bounds: Floats = np.multiply(known.tails, known.listed.size) * ROUNDING
    return bounds


@proved("known.md#the-decision")
def admitted_level(known: KnownLevels | NightLevels, released: int, reached: Int64s) -> int:
    """Return the level from which listed items are released. If it is above all levels, no listed item is released.

    Proof: "the lowest level l with N p_l <= eta R_l"

    Args:
        known: The levels of the list.
        released: The number of other released items.
        reached: The number of listed items at each level from 0 on.
    """
    # R_l for each level from 1 on is the number of other released items plus the number of listed items of this level
    # or higher.
    from_level = released + np.cumsum(reached[:0:-1])[::-1]
    return int(np.argmax(np.append(empty_by_level(known) <= known.share * from_level, True))) + 1


GATES = {
    "adaptive rounds": "rounds:AdaptiveGate",
    "threshold": "rounds:ThresholdGate",
    "optimal selection": "rounds:SelectionGate",
    "counts": "counts:CountsGate",
    "picks": "counts:PicksGate",
    "paths": "trees:PathsGate",
    "votes": "votes:VotesGate",
    "nights": "nights:NightsGate",
    "keys": "counts:KeysGate",
}
"""The module and the class of the gate for each type of proof."""


def gate_of(text: str, secret: Secret) -> Any:
    """Return the gate for a certificate."""
    module, name = GATES[json.loads(text)["proof"]].split(":")
    return getattr(import_module(f"voxpop.privacy.gate.{module}"), name)(text, secret)
