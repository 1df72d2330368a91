"""A node through the four stages of a round: keys, shares, masked sums, and the shares that unmask the total.

A node never tells both shares of another: the one of its own mask if its sums came, the one of its key if they did not.
With either alone its sums stay masked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np
from flwr.common.secure_aggregation.crypto.shamir import create_shares

from voxpop.errors import InputError
from voxpop.hitters.masking.keys import (
    KEY,
    Sums,
    agreed,
    committed,
    mask,
    new_secret,
    opened,
    public_of,
    sealed,
)

LEAST_NODES = 3


def least_of(nodes: int) -> int:
    """Return how many of the nodes must stay until the end: more than two thirds.

    Fewer cannot unmask anything, so a server and as many nodes as a third of all that work together learn the total
    and no more.
    """
    # t with 2 t - n > n / 3: no server with a third of the nodes gets both kinds of shares of one
    # (docs/privacy/heavy-hitters.md, "Secure aggregation").
    return 2 * nodes // 3 + 1


@final
@dataclass(slots=True, repr=False)
class Member:
    """What a node keeps from stage to stage: secret.

    Attributes:
        session: names the run and the round; keys and masks of another session differ.
        number: of the node.
        secrets: the key of its masks, the key of its letters, and the seed of its own mask.
        peers: two public keys of each node, its own included.
        letters: what the others sent: two shares each, encrypted.
        said: the last stage that was answered; each is answered once.
    """

    session: str
    number: int
    secrets: tuple[bytes, bytes, bytes] = field(default_factory=lambda: (new_secret(), new_secret(), new_secret()))
    peers: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    letters: dict[int, bytes] = field(default_factory=dict)
    said: int = 0

    def keys(self) -> tuple[bytes, bytes, bytes]:
        """Return stage 1: two public keys, and what commits the node to its own mask."""
        self._once(1)
        return public_of(self.secrets[0]), public_of(self.secrets[1]), committed(self.secrets[2])

    def shares(self, peers: Mapping[int, tuple[bytes, bytes]]) -> dict[int, bytes]:
        """Return stage 2: for each other node a letter with a share of this node's key and one of its own mask.

        Args:
            peers: two public keys of each node that takes part.

        Raises:
            InputError: if there are too few, or this node's keys are not among them as it sent them.
        """
        self._once(2)
        own = (public_of(self.secrets[0]), public_of(self.secrets[1]))
        if len(peers) < LEAST_NODES or peers.get(self.number) != own or len(set(peers.values())) < len(peers):
            raise InputError(f"a round needs {LEAST_NODES} nodes with keys of their own, and this node's among them.")
        self.peers = dict(sorted(peers.items()))
        least = least_of(len(peers))
        # Shamir's sharing: any `least` of them give the secret back.
        of_key = create_shares(self.secrets[0], least, len(peers))
        of_mask = create_shares(self.secrets[2], least, len(peers))
        letters = {}
        for other, first, second in zip(self.peers, of_key, of_mask, strict=True):
            # The two shares, the first with its length before it.
            text = len(first).to_bytes(4, "big") + first + second
            if other == self.number:
                self.letters[other] = text
            else:
                letters[other] = sealed(self._key(other), text, self._context(self.number, other))
        return letters

    def masked(self, letters: Mapping[int, bytes], sums: Sums) -> Sums:
        """Return stage 3: the sums under a mask of this node's own and one with each other node.

        Args:
            letters: what the others sent to this one; who sent none is left out.
            sums: what this node has counted.

        Raises:
            InputError: if too few sent one.
        """
        self._once(3)
        self.letters |= {other: letters[other] for other in letters if other in self.peers and other != self.number}
        self._enough(len(self.letters))
        # Modulo 2^32, so a masked vector is uniform whatever the sums are.
        total: Sums = sums + mask(self.secrets[2], f"own/{self.session}", len(sums))
        for other in self.letters:
            if other != self.number:
                total = total + pair_mask(
                    self.secrets[0], self.peers[other][0], self.number, other, self.session, len(sums)
                )
        return total

    def unmasking(self, came: list[int]) -> dict[int, bytes]:
        """Return stage 4: for each node whose sums came the share of its own mask, for each other one that of its key.

        Args:
            came: whose sums came.

        Raises:
            InputError: if they are too few, or strangers.
        """
        # A second answer to this stage could name another set, and give the other share.
        self._once(4)
        if len(set(came)) < len(came) or not set(came) <= set(self.letters):
            raise InputError("the server names nodes that did not take part.")
        self._enough(len(came))
        # True picks the second share, of the mask; False the first, of the key. Never both.
        return {other: self._read(other)[other in came] for other in self.letters}

    def _read(self, other: int) -> tuple[bytes, bytes]:
        text = self.letters[other]
        if other != self.number:
            text = opened(self._key(other), text, self._context(other, self.number))
        size = int.from_bytes(text[:4], "big")
        return text[4 : 4 + size], text[4 + size :]

    def _key(self, other: int) -> bytes:
        return agreed(self.secrets[1], self.peers[other][1], f"letters/{self.session}")

    def _context(self, sender: int, reader: int) -> str:
        return f"{self.session}/{sender}/{reader}"

    def _enough(self, count: int) -> None:
        least = least_of(len(self.peers))
        if count < least:
            raise InputError(
                f"{count} nodes are left of {len(self.peers)}; {least} are needed, so nothing more is said."
            )

    def _once(self, stage: int) -> None:
        if stage != self.said + 1:
            raise InputError(f"stage {stage} was asked for after stage {self.said}; a node answers each stage once.")
        self.said = stage


def pair_mask(secret: bytes, public: bytes, number: int, other: int, session: str, length: int) -> Sums:
    """Return the mask that a node adds for another; the other adds its opposite.

    Args:
        secret: the key of the node's masks.
        public: the other's.
        number: of the node.
        other: number of the other.
        session: of run and round.
        length: of the vector.
    """
    # Both derive one mask; the lower number adds it, the higher its opposite.
    low, high = sorted((number, other))
    drawn = mask(agreed(secret, public, f"masks/{session}/{low}/{high}"), f"pair/{session}", length)
    return drawn if number < other else np.uint32(0) - drawn


def is_key(value: object) -> bool:
    """Say whether something is as long as a key."""
    return isinstance(value, bytes) and len(value) == KEY
