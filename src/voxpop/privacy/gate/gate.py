"""The common part of all gates: one certificate, one secret, ordered passes that run once, and the transcript."""

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar, final

from voxpop.errors import InternalError
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
        text: The certificate of a checked plan.
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
