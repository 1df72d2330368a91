"""The gate of sampled votes. It releases only the prefixes that reach the threshold, without their numbers of votes."""

from collections.abc import Callable, Mapping
from typing import final

from voxpop.kernels.proved import proved
from voxpop.privacy.gate.gate import Gate, refused
from voxpop.privacy.passes import VotesProof
from voxpop.privacy.secret import Secret
from voxpop.privacy.trie.accountant import Words
from voxpop.privacy.trie.ballot import Ballot, _Prefix


@final
class VotesGate(Gate[VotesProof]):
    """The gate of rounds of votes (docs/privacy/heavy-hitters.md)."""

    _proves = VotesProof

    def __init__(self, text: str, secret: Secret) -> None:
        super().__init__(text, secret)
        self._rounds = 0

    @proved("heavy-hitters.md#the-mechanism")
    def round(self, votes: Callable[[Ballot, Words, Secret], Mapping[_Prefix, int]]) -> frozenset[_Prefix]:
        """Return the prefixes with at least theta votes.

        Proof: "All votes of a user in a round go to one prefix. Prefixes with at least theta votes grow."

        Args:
            votes: A function that counts the votes of all users in the next round. Each user votes for one prefix, as
                the ballot specifies.
        """
        proof = self.proof
        if self._rounds >= proof.rounds:
            raise refused("there would be more rounds than the certificate contains")
        self._rounds += 1
        self._note("votes", {"round": self._rounds})
        ballot = Ballot(proof.rate, proof.theta, proof.again, proof.further)
        return ballot.survivors(votes(ballot, proof.words, self._secret))
