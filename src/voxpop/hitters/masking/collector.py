"""The server through the four stages of a round: it relays keys and letters, adds masked sums, and unmasks the total.

It holds public keys, encrypted letters, masked vectors and, in the end, one share of each secret from each node: of a
node whose sums came only of its own mask, of one that was lost only of its key. Where too few nodes stay, it stops.
"""

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from flwr.common.secure_aggregation.crypto.shamir import combine_shares

from voxpop.errors import InputError
from voxpop.hitters.masking.keys import Sums, committed, mask, public_of
from voxpop.hitters.masking.member import LEAST_NODES, is_key, least_of, pair_mask

Answers = Mapping[int, dict[str, Any]]
Ask = Callable[[str, Answers], Answers]
"""From a stage and what each node is told to what each node that answers says."""


@final
class Collector:
    """One round of secure aggregation.

    Attributes:
        complaints: one line for each node that is missing from the total.
    """

    def __init__(self, session: str, length: int, ask: Ask, domain: bytes = b""):
        """Prepare a round.

        Args:
            session: names run and round, and its part.
            length: of the vectors.
            ask: the transport.
            domain: what the places of a vector mean, as a digest; a node must send the same.
        """
        self.session, self.length, self.ask, self.domain = session, length, ask, domain
        self.complaints: list[str] = []
        self.keys: dict[int, tuple[bytes, bytes, bytes]] = {}
        self.masked: dict[int, Sums] = {}
        self.least = LEAST_NODES

    def total(self, nodes: list[int]) -> Sums:
        """Return the sum of the vectors of the nodes that stay until the end.

        Args:
            nodes: who is asked.

        Raises:
            InputError: where too few stay, or what they tell does not fit together. Then nothing is released.
        """
        self.keys = self._keys(nodes)
        self.least = least_of(len(self.keys))
        # Each stage goes on with those who answered the one before, and stops below `least`.
        letters = self._letters()
        self.masked = self._masked(letters)
        told = self._unmasking(sorted(letters))
        # Modulo 2^32: pair masks of nodes that came cancel here.
        total: Sums = np.zeros(self.length, np.uint32)
        for vector in self.masked.values():
            total = total + vector
        for node in sorted(letters):
            secret = self._secret(node, told)
            if node in self.masked:
                # Of a node that came only its own mask is known; its key is not, so nothing but the total is unmasked.
                total = total - mask(secret, f"own/{self.session}", self.length)
            else:
                total = self._without_pairs(total, node, secret)
        return total

    def _keys(self, nodes: list[int]) -> dict[int, tuple[bytes, bytes, bytes]]:
        answers = self.ask("keys", {node: {} for node in nodes})
        keys = {}
        for node, answer in sorted(answers.items()):
            parts = _texts(answer, "keys")
            # Mask key, letter key, and the commitment to the node's own mask.
            if len(parts) == 3 and all(map(is_key, parts)):
                keys[node] = (parts[0], parts[1], parts[2])
        return self._left(keys, nodes, answers, max(LEAST_NODES, least_of(len(nodes))))

    def _letters(self) -> dict[int, dict[int, bytes]]:
        told = {"nodes": list(self.keys), "masks": [k[0] for k in self.keys.values()]}
        told["letters"] = [k[1] for k in self.keys.values()]
        answers = self.ask("shares", dict.fromkeys(self.keys, told))
        letters = {}
        for node, answer in sorted(answers.items()):
            sent = dict(zip(answer.get("nodes", ()), _texts(answer, "letters"), strict=False))
            if set(sent) == set(self.keys) - {node}:
                letters[node] = sent
        return self._left(letters, list(self.keys), answers, self.least)

    def _masked(self, letters: Mapping[int, Mapping[int, bytes]]) -> dict[int, Sums]:
        told = {}
        for node in letters:
            senders = [sender for sender in letters if sender != node]
            told[node] = {"nodes": senders, "letters": [letters[sender][node] for sender in senders]}
        answers = self.ask("masked", told)
        masked = {}
        for node, answer in sorted(answers.items()):
            vector = answer.get("sums")
            # Places that mean something else at that node would be added up as if they meant the same.
            same = answer.get("domain", b"") == self.domain
            if same and isinstance(vector, bytes) and len(vector) == 4 * self.length:
                masked[node] = np.frombuffer(vector, np.dtype("<u4")).astype(np.uint32)
        return self._left(masked, list(letters), answers, self.least)

    def _unmasking(self, shared: list[int]) -> dict[int, list[bytes]]:
        """Return for each node the shares that were told of it."""
        answers = self.ask("unmasking", {node: {"nodes": list(self.masked)} for node in self.masked})
        complete = {}
        for node, answer in sorted(answers.items()):
            shares = dict(zip(answer.get("nodes", ()), _texts(answer, "shares"), strict=False))
            if set(shares) == set(shared):
                complete[node] = shares
        kept = self._left(complete, list(self.masked), answers, self.least, counted=True)
        return {node: [shares[node] for shares in kept.values()] for node in shared}

    def _secret(self, node: int, told: Mapping[int, list[bytes]]) -> bytes:
        """Return a node's key or seed from its shares, checked against what it said at first."""
        try:
            # Shamir: any `least` shares give the secret, fewer say nothing.
            secret: bytes = combine_shares(told[node][: self.least])
            came = node in self.masked
            # A wrong share would unmask to noise, and noise above theta would be released.
            right = (committed(secret) == self.keys[node][2]) if came else (public_of(secret) == self.keys[node][0])
        except (ValueError, IndexError):
            right = False
        if not right:
            raise InputError(
                f"the shares of node {node} do not fit what it said at first: it or another node lies. The round is "
                "given up and nothing is released; start a new run without the node."
            )
        return secret

    def _without_pairs(self, total: Sums, lost: int, secret: bytes) -> Sums:
        """Return the total without what the others added for a node that was lost after it had sent its letters."""
        for other in self.masked:
            # The lost node would have added the opposite of what `other` added for it.
            total = total + pair_mask(secret, self.keys[other][0], lost, other, self.session, self.length)
        return total

    def _left(
        self, kept: dict[int, Any], asked: list[int], answers: Answers, least: int, *, counted: bool = False
    ) -> dict[int, Any]:
        """Return what was kept of the answers, and complain of every node of which nothing was."""
        for node in asked:
            if node not in kept:
                why = "refused or failed" if node in answers else "lost or late"
                why = "what it sent does not fit the round" if answers.get(node) else why
                what = "counted, but did not help to unmask" if counted else "is left out"
                self.complaints.append(f"node {node} {what}: {why}")
        if len(kept) < least:
            raise InputError(
                f"{len(kept)} of {len(asked)} nodes are left and {least} are needed to unmask the total. The round "
                "is given up and nothing is released; start a new run when the nodes are back."
            )
        return kept


def _texts(answer: Mapping[str, Any], name: str) -> list[bytes]:
    """Return a list of bytes that a node sent, or nothing where it sent something else."""
    sent = answer.get(name)
    return list(sent) if isinstance(sent, list | tuple) and all(isinstance(each, bytes) for each in sent) else []
