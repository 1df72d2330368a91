"""Secure aggregation of vectors of counts, which reveals only the total.

This module requires the distribution `voxpop-flower`.

The protocol is from Bonawitz et al., "Practical Secure Aggregation for Privacy-Preserving Machine Learning" (CCS 2017),
with a complete graph of nodes. The library `cryptography` provides key agreement, encryption and masks, and Flower
provides Shamir's secret sharing. Flower's SecAgg+ is not used, because it supports only the old workflows of Flower,
adds randomly rounded floats, and derives its masks from 32 bits (`pseudo_rand_gen`), which a server can search
exhaustively.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, final

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from flwr.common.secure_aggregation.crypto.shamir import combine_shares, create_shares

from voxpop.errors import InputError
from voxpop.kernels.arrays import Uint32s

# Keys, encryption between nodes, and masks use X25519, HKDF, AES-GCM and AES-CTR.

Sums = Uint32s
KEY = 32
_NONCE = 12


def new_secret() -> bytes:
    """Return 32 random bytes from the operating system, for a secret key or the seed of a mask."""
    return os.urandom(KEY)


def public_of(secret: bytes) -> bytes:
    """Return the public key of a secret key."""
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def agreed(secret: bytes, public: bytes, purpose: str) -> bytes:
    """Return the key on which two nodes agree for a purpose.

    Args:
        secret: The secret key of one node.
        public: The public key of the other node.
        purpose: The purpose of the key. Each purpose has a different key.

    Raises:
        InputError: If the public key is invalid.
    """
    try:
        # Diffie-Hellman over Curve25519, so only these two nodes can compute the 32 bytes.
        shared = X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise InputError("the received value is not a public key. Start a new run.") from None
    return _derived(shared, purpose)


def mask(seed: bytes, purpose: str, length: int) -> Sums:
    """Return a vector of 32-bit numbers that is pseudorandom for anyone without the seed.

    Args:
        seed: The seed of 32 bytes.
        purpose: The purpose of the mask. Each purpose has a different mask.
        length: The number of entries.
    """
    # The counter starts at 0. The key encrypts only this stream, so no nonce repeats.
    stream = Cipher(algorithms.AES(_derived(seed, purpose)), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(stream.update(bytes(4 * length)), np.dtype("<u4")).astype(np.uint32)


def sealed(key: bytes, text: bytes, context: str) -> bytes:
    """Encrypt a text, bind it to a context, and return the result.

    Args:
        key: The key of 32 bytes.
        text: The secret text.
        context: The public context, which `opened` must receive unchanged.
    """
    # A nonce has 96 random bits. A key encrypts only one letter in each direction, so the probability of a collision is
    # negligible.
    nonce = os.urandom(_NONCE)
    return nonce + AESGCM(key).encrypt(nonce, text, context.encode())


def opened(key: bytes, cipher: bytes, context: str) -> bytes:
    """Return the text that `sealed` encrypted.

    Raises:
        InputError: If the key or the context differs, or the ciphertext was changed.
    """
    try:
        return AESGCM(key).decrypt(cipher[:_NONCE], cipher[_NONCE:], context.encode())
    except (InvalidTag, ValueError):
        raise InputError("a share was changed in transit or was sent to another node. Start a new run.") from None


def committed(seed: bytes) -> bytes:
    """Return a digest that commits to a seed without revealing the seed."""
    return hashlib.sha256(b"voxpop mask" + seed).digest()


def _derived(secret: bytes, purpose: str) -> bytes:
    return HKDF(hashes.SHA256(), KEY, salt=None, info=purpose.encode()).derive(secret)


# A node during the four stages of a round. The stages exchange keys, shares, masked sums, and the shares that unmask
# the total. A node never reveals both shares of another node. The node reveals the share of the mask if the sums of the
# other node arrived, and otherwise the share of the key. Shares of only one kind do not suffice to unmask the sums of a
# node.

LEAST_NODES = 3


def least_of(nodes: int) -> int:
    """Return the number of nodes that must remain until the end. This number is more than two thirds of all nodes.

    Fewer nodes cannot unmask anything, so a server that colludes with up to a third of the nodes learns only the total.
    """
    # This t satisfies 2 t - n > n / 3, so a server with a third of the nodes cannot get both kinds of shares of a node
    # (docs/privacy/heavy-hitters.md, "Secure aggregation").
    return 2 * nodes // 3 + 1


@final
@dataclass(slots=True, repr=False)
class Member:
    """The secret state of a node between stages.

    Attributes:
        session: The name of the run and the round. Keys and masks differ between sessions.
        number: The id of the node.
        secrets: The key of its masks, the key of its letters, and the seed of its mask.
        peers: The two public keys of each node, including this node.
        letters: Encrypted messages of the other nodes, with two shares each.
        said: The last stage that the node answered. Each stage is answered once.
    """

    session: str
    number: int
    secrets: tuple[bytes, bytes, bytes] = field(default_factory=lambda: (new_secret(), new_secret(), new_secret()))
    peers: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    letters: dict[int, bytes] = field(default_factory=dict)
    said: int = 0

    def keys(self) -> tuple[bytes, bytes, bytes]:
        """Return the answer of stage 1, which consists of two public keys and the node's commitment to its mask."""
        self._once(1)
        return public_of(self.secrets[0]), public_of(self.secrets[1]), committed(self.secrets[2])

    def shares(self, peers: Mapping[int, tuple[bytes, bytes]]) -> dict[int, bytes]:
        """Return the answer of stage 2, letters to other nodes with one share of this node's key and one of its mask.

        Args:
            peers: The two public keys of each node that takes part.

        Raises:
            InputError: If there are too few nodes, or the keys of this node are missing or changed.
        """
        self._once(2)
        own = (public_of(self.secrets[0]), public_of(self.secrets[1]))
        if len(peers) < LEAST_NODES or peers.get(self.number) != own or len(set(peers.values())) < len(peers):
            raise InputError(
                f"a round must have at least {LEAST_NODES} nodes with different keys, including this node."
            )
        self.peers = dict(sorted(peers.items()))
        least = least_of(len(peers))
        # By Shamir's secret sharing, any `least` shares determine the secret.
        of_key = create_shares(self.secrets[0], least, len(peers))
        of_mask = create_shares(self.secrets[2], least, len(peers))
        letters = {}
        for other, first, second in zip(self.peers, of_key, of_mask, strict=True):
            # The text contains two shares. The first one is preceded by its length.
            text = len(first).to_bytes(4, "big") + first + second
            if other == self.number:
                self.letters[other] = text
            else:
                letters[other] = sealed(self._key(other), text, self._context(self.number, other))
        return letters

    def masked(self, letters: Mapping[int, bytes], sums: Sums) -> Sums:
        """Return the answer of stage 3, the vector of sums plus this node's own mask and one mask per other node.

        Args:
            letters: Messages from other nodes to this node. Nodes without a message are excluded.
            sums: The counts of this node.

        Raises:
            InputError: If too few nodes sent a message.
        """
        self._once(3)
        self.letters |= {other: letters[other] for other in letters if other in self.peers and other != self.number}
        self._enough(len(self.letters))
        # The sums are modulo 2^32, so the masked vector is uniformly distributed for any sums.
        total: Sums = sums + mask(self.secrets[2], f"own/{self.session}", len(sums))
        for other in self.letters:
            if other != self.number:
                key = self.peers[other][0]
                total = total + pair_mask(self.secrets[0], key, self.number, other, self.session, len(sums))
        return total

    def unmasking(self, came: list[int]) -> dict[int, bytes]:
        """Return the answer of stage 4, which is one share of each other node.

        This is the share of the mask if the sums of that node arrived, and the share of its key otherwise.

        Args:
            came: The nodes that sent their sums.

        Raises:
            InputError: If there are too few nodes or unknown nodes.
        """
        # A second answer to this stage could refer to another set of nodes and reveal the other share.
        self._once(4)
        if len(set(came)) < len(came) or not set(came) <= set(self.letters):
            raise InputError("the server named nodes that did not take part. Start a new run.")
        self._enough(len(came))
        # The index is True for the second share (of the mask) and False for the first share (of the key), so a node
        # never sends both.
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
                f"{count} of {len(self.peers)} nodes are left, but {least} are required, "
                "so this node sends nothing more. Start a new run."
            )

    def _once(self, stage: int) -> None:
        if stage != self.said + 1:
            raise InputError(
                f"stage {stage} was requested after stage {self.said}, "
                "but a node answers each stage once. Start a new run."
            )
        self.said = stage


def pair_mask(secret: bytes, public: bytes, number: int, other: int, session: str, length: int) -> Sums:
    """Return the mask that a node adds for another node, while the other node adds the negative of this mask.

    Args:
        secret: The secret key of the node's masks.
        public: The public key of the other node.
        number: The id of the node.
        other: The id of the other node.
        session: The name of the run and the round.
        length: The length of the vector.
    """
    # Both nodes derive the same mask. The node with the lower number adds it, and the other node subtracts it.
    low, high = sorted((number, other))
    drawn = mask(agreed(secret, public, f"masks/{session}/{low}/{high}"), f"pair/{session}", length)
    return drawn if number < other else np.uint32(0) - drawn


# The server during the four stages of a round. The server relays keys and letters, adds masked sums, and unmasks the
# total. The server receives public keys, encrypted letters, masked vectors, and shares of one secret per node. This
# secret is the mask if the sums of the node arrived, and the key otherwise. The server stops if too few nodes remain.

Read = TypeVar("Read")
Answers = Mapping[int, dict[str, Any]]
Ask = Callable[[str, Answers], Answers]
"""A function from a stage and the message to each node to the answers of the nodes."""


@final
class Collector:
    """One round of secure aggregation.

    Attributes:
        complaints: One line for each node that is missing from the total.
    """

    def __init__(self, session: str, length: int, ask: Ask, domain: bytes = b""):
        """Prepare a round.

        Args:
            session: The name of the run, the round and the part of the round.
            length: The length of the vectors.
            ask: The transport.
            domain: The digest that identifies the meaning of each place in the vectors. A node must send the same
                digest.
        """
        self.session, self.length, self.ask, self.domain = session, length, ask, domain
        self.complaints: list[str] = []
        self.keys: dict[int, tuple[bytes, bytes, bytes]] = {}
        self.masked: dict[int, Sums] = {}
        self.least = LEAST_NODES

    def total(self, nodes: list[int]) -> Sums:
        """Return the sum of the vectors of the nodes that remain until the end.

        Args:
            nodes: The nodes of the round.

        Raises:
            InputError: If too few nodes remain, or their answers are inconsistent. In this case nothing is released.
        """
        self.keys = self._stage("keys", {node: {} for node in nodes}, _public_keys, least_of(len(nodes)))
        self.least = least_of(len(self.keys))
        # Each stage continues with the nodes that answered the previous stage, and stops if there are fewer than
        # `least`.
        told: dict[str, Any] = {
            "nodes": list(self.keys),
            "masks": [mask_key for mask_key, _, _ in self.keys.values()],
            "letters": [letter_key for _, letter_key, _ in self.keys.values()],
        }
        letters = self._stage("shares", dict.fromkeys(self.keys, told), self._letters)
        relayed = {}
        for node in letters:
            senders = [sender for sender in letters if sender != node]
            relayed[node] = {"nodes": senders, "letters": [letters[sender][node] for sender in senders]}
        self.masked = self._stage("masked", relayed, self._vector)

        def shares_of(_: int, answer: Mapping[str, Any]) -> dict[int, bytes] | None:
            shares = _by_node(answer, "shares")
            return shares if set(shares) == set(letters) else None

        came: dict[str, Any] = {"nodes": list(self.masked)}
        shares = self._stage("unmasking", dict.fromkeys(self.masked, came), shares_of)
        # The sums are modulo 2^32. The pair masks of two nodes cancel here if both nodes sent their sums.
        total: Sums = np.zeros(self.length, np.uint32)
        for vector in self.masked.values():
            total = total + vector
        for node in sorted(letters):
            secret = self._secret(node, [each[node] for each in shares.values()])
            if node in self.masked:
                # If the sums of a node arrived, the server gets the mask of the node but not its key, so it unmasks
                # only the total.
                total = total - mask(secret, f"own/{self.session}", self.length)
            else:
                for other in self.masked:
                    # The lost node would have added the negative of the mask that `other` added for it.
                    lost = pair_mask(secret, self.keys[other][0], node, other, self.session, self.length)
                    total = total + lost
        return total

    def _letters(self, node: int, answer: Mapping[str, Any]) -> dict[int, bytes] | None:
        sent = _by_node(answer, "letters")
        return sent if set(sent) == set(self.keys) - {node} else None

    def _vector(self, _: int, answer: Mapping[str, Any]) -> Sums | None:
        vector = answer.get("sums")
        # Without this check, places with different meanings at different nodes would be added.
        same = answer.get("domain", b"") == self.domain
        if not same or not isinstance(vector, bytes) or len(vector) != 4 * self.length:
            return None
        return np.frombuffer(vector, np.dtype("<u4")).astype(np.uint32)

    def _secret(self, node: int, shares: list[bytes]) -> bytes:
        """Return a node's key or seed from its shares, after a check against the first message of the node."""
        try:
            # Any `least` shares determine the secret, and fewer shares reveal nothing (Shamir).
            secret: bytes = combine_shares(shares[: self.least])
            came = node in self.masked
            # With a wrong share, the unmasked total would be noise, and noise above theta would be released.
            right = (committed(secret) == self.keys[node][2]) if came else (public_of(secret) == self.keys[node][0])
        except (ValueError, IndexError):
            right = False
        if not right:
            raise InputError(
                f"the shares of node {node} do not fit its first message, so it or another node is dishonest. The "
                "round is aborted and nothing is released; start a new run without the node."
            )
        return secret

    def _stage(
        self, stage: str, told: Answers, read: Callable[[int, Mapping[str, Any]], Read | None], least: int = 0
    ) -> dict[int, Read]:
        """Return the answers of the nodes in a stage, and add a complaint for each node without an accepted answer."""
        answers, kept = self.ask(stage, told), {}
        for node, answer in sorted(answers.items()):
            found = read(node, answer)
            if found is not None:
                kept[node] = found
        for node in told:
            if node not in kept:
                why = "refused or failed" if node in answers else "lost or late"
                why = "its answer does not fit the round" if answers.get(node) else why
                what = "counted, but did not help to unmask" if stage == "unmasking" else "is skipped"
                self.complaints.append(f"node {node} {what}: {why}")
        least = max(LEAST_NODES, least or self.least)
        if len(kept) < least:
            raise InputError(
                f"{len(kept)} of {len(told)} nodes are left and {least} are needed to unmask the total. The round is "
                "aborted and nothing is released; start a new run when the nodes are back."
            )
        return kept


def _public_keys(_: int, answer: Mapping[str, Any]) -> tuple[bytes, bytes, bytes] | None:
    """Return the mask key, the letter key, and the commitment of a node to its own mask."""
    parts = _texts(answer, "keys")
    return (parts[0], parts[1], parts[2]) if [len(part) for part in parts] == [KEY] * 3 else None


def _by_node(answer: Mapping[str, Any], name: str) -> dict[int, bytes]:
    return dict(zip(answer.get("nodes", ()), _texts(answer, name), strict=False))


def _texts(answer: Mapping[str, Any], name: str) -> list[bytes]:
    """Return the list of bytes that a node sent, or an empty list if the node sent anything else."""
    sent = answer.get(name)
    return list(sent) if isinstance(sent, list | tuple) and all(isinstance(each, bytes) for each in sent) else []
