"""Secure aggregation of vectors of counts, which reveals only their total; needs the distribution `voxpop-flower`.

The protocol is that of Bonawitz et al., "Practical Secure Aggregation for Privacy-Preserving Machine Learning" (CCS
2017), with a complete graph of nodes. Agreement, encryption and masks come from `cryptography`, shares from Flower's
Shamir. Flower's own SecAgg+ serves its old workflows only, adds floats rounded at random, and makes its masks from 32
bits (`pseudo_rand_gen`), which a server can try out; so SecAgg+ is not used.
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

# Keys, encryption between nodes, and masks: X25519, HKDF, AES-GCM and AES-CTR.

Sums = Uint32s
KEY = 32
_NONCE = 12


def new_secret() -> bytes:
    """Return a secret key, or the seed of a mask: 32 bytes of the operating system."""
    return os.urandom(KEY)


def public_of(secret: bytes) -> bytes:
    """Return the public key that goes with a secret one."""
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def agreed(secret: bytes, public: bytes, purpose: str) -> bytes:
    """Return the key that two nodes agree on for a purpose, from one's secret key and the other's public one.

    Raises:
        InputError: if the public key is invalid.
    """
    try:
        # Diffie and Hellman over Curve25519: only these two nodes get the same 32 bytes.
        shared = X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise InputError("the value received as a public key is not one. Start a new run.") from None
    return _derived(shared, purpose)


def mask(seed: bytes, purpose: str, length: int) -> Sums:
    """Return a vector of 32-bit numbers that is pseudorandom without the seed.

    Args:
        seed: 32 bytes.
        purpose: different purposes have different masks.
        length: number of entries.
    """
    # Counter mode from 0: the key is used for this one stream, so no nonce repeats.
    stream = Cipher(algorithms.AES(_derived(seed, purpose)), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(stream.update(bytes(4 * length)), np.dtype("<u4")).astype(np.uint32)


def sealed(key: bytes, text: bytes, context: str) -> bytes:
    """Return a text encrypted and bound to a context.

    Args:
        key: 32 bytes.
        text: to be kept secret.
        context: public; it must be the same when it is opened.
    """
    # 96 random bits: a key seals one letter each way, so a collision is out of reach.
    nonce = os.urandom(_NONCE)
    return nonce + AESGCM(key).encrypt(nonce, text, context.encode())


def opened(key: bytes, cipher: bytes, context: str) -> bytes:
    """Return the text of `sealed`.

    Raises:
        InputError: if it was made with another key or context, or changed.
    """
    try:
        return AESGCM(key).decrypt(cipher[:_NONCE], cipher[_NONCE:], context.encode())
    except (InvalidTag, ValueError):
        raise InputError("a share was changed in transit or was sent to another node. Start a new run.") from None


def committed(seed: bytes) -> bytes:
    """Return a digest that shows later that a seed was not changed, and nothing about it."""
    return hashlib.sha256(b"voxpop mask" + seed).digest()


def _derived(secret: bytes, purpose: str) -> bytes:
    return HKDF(hashes.SHA256(), KEY, salt=None, info=purpose.encode()).derive(secret)


# A node in the four stages of a round: keys, shares, masked sums, and the shares that unmask the total. A node never
# reveals both shares of another node: it reveals the share of the mask if the sums arrived, and of the key otherwise.
# With only one of them the sums stay masked.

LEAST_NODES = 3


def least_of(nodes: int) -> int:
    """Return the number of nodes that must stay until the end: more than two thirds.

    Fewer cannot unmask anything, so a server that colludes with up to a third of the nodes learns only the total.
    """
    # t with 2 t - n > n / 3: no server with a third of the nodes gets both kinds of shares of one
    # (docs/privacy/heavy-hitters.md, "Secure aggregation").
    return 2 * nodes // 3 + 1


@final
@dataclass(slots=True, repr=False)
class Member:
    """The secret state of a node between stages.

    Attributes:
        session: names the run and the round; keys and masks of another session differ.
        number: of the node.
        secrets: the key of its masks, the key of its letters, and the seed of its mask.
        peers: two public keys of each node, its own included.
        letters: messages of the others: two shares each, encrypted.
        said: the last stage that was answered; each is answered once.
    """

    session: str
    number: int
    secrets: tuple[bytes, bytes, bytes] = field(default_factory=lambda: (new_secret(), new_secret(), new_secret()))
    peers: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    letters: dict[int, bytes] = field(default_factory=dict)
    said: int = 0

    def keys(self) -> tuple[bytes, bytes, bytes]:
        """Return stage 1: two public keys, and the commitment of the node to its mask."""
        self._once(1)
        return public_of(self.secrets[0]), public_of(self.secrets[1]), committed(self.secrets[2])

    def shares(self, peers: Mapping[int, tuple[bytes, bytes]]) -> dict[int, bytes]:
        """Return stage 2: for each other node a letter with a share of this node's key and one of its mask.

        Args:
            peers: two public keys of each node that takes part.

        Raises:
            InputError: if there are too few, or this node's keys are not among them as it sent them.
        """
        self._once(2)
        own = (public_of(self.secrets[0]), public_of(self.secrets[1]))
        if len(peers) < LEAST_NODES or peers.get(self.number) != own or len(set(peers.values())) < len(peers):
            raise InputError(
                f"a round must have at least {LEAST_NODES} nodes with different keys, including this node."
            )
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
            letters: messages of the others to this node; nodes without one are left out.
            sums: the counts of this node.

        Raises:
            InputError: if too few sent one.
        """
        self._once(3)
        self.letters |= {other: letters[other] for other in letters if other in self.peers and other != self.number}
        self._enough(len(self.letters))
        # Modulo 2^32, so a masked vector is uniform for any sums.
        total: Sums = sums + mask(self.secrets[2], f"own/{self.session}", len(sums))
        for other in self.letters:
            if other != self.number:
                key = self.peers[other][0]
                total = total + pair_mask(self.secrets[0], key, self.number, other, self.session, len(sums))
        return total

    def unmasking(self, came: list[int]) -> dict[int, bytes]:
        """Return stage 4: the share of the mask of each node whose sums arrived, and of the key of each other node.

        Args:
            came: nodes whose sums arrived.

        Raises:
            InputError: if they are too few, or strangers.
        """
        # A second answer to this stage could name another set, and give the other share.
        self._once(4)
        if len(set(came)) < len(came) or not set(came) <= set(self.letters):
            raise InputError("the server named nodes that did not take part. Start a new run.")
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


# The server in the four stages of a round: it relays keys and letters, adds masked sums, and unmasks the total. It
# receives public keys, encrypted letters, masked vectors and one share of one secret of each node: of the mask if the
# sums of the node arrived, and of its key otherwise. It stops if too few nodes remain.

Read = TypeVar("Read")
Answers = Mapping[int, dict[str, Any]]
Ask = Callable[[str, Answers], Answers]
"""Map a stage and the message to each node to the answers of the nodes."""


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
            domain: digest of the meaning of the places of a vector; a node must send the same.
        """
        self.session, self.length, self.ask, self.domain = session, length, ask, domain
        self.complaints: list[str] = []
        self.keys: dict[int, tuple[bytes, bytes, bytes]] = {}
        self.masked: dict[int, Sums] = {}
        self.least = LEAST_NODES

    def total(self, nodes: list[int]) -> Sums:
        """Return the sum of the vectors of the nodes that stay until the end.

        Args:
            nodes: the nodes of the round.

        Raises:
            InputError: if too few stay, or their answers are inconsistent. Then nothing is released.
        """
        self.keys = self._stage("keys", {node: {} for node in nodes}, _public_keys, least_of(len(nodes)))
        self.least = least_of(len(self.keys))
        # Each stage goes on with those who answered the one before, and stops below `least`.
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
        # Modulo 2^32: pair masks of nodes that came cancel here.
        total: Sums = np.zeros(self.length, np.uint32)
        for vector in self.masked.values():
            total = total + vector
        for node in sorted(letters):
            secret = self._secret(node, [each[node] for each in shares.values()])
            if node in self.masked:
                # Of a node that came only its own mask is known; its key is not, so nothing but the total is unmasked.
                total = total - mask(secret, f"own/{self.session}", self.length)
            else:
                for other in self.masked:
                    # The lost node would have added the opposite of what `other` added for it.
                    lost = pair_mask(secret, self.keys[other][0], node, other, self.session, self.length)
                    total = total + lost
        return total

    def _letters(self, node: int, answer: Mapping[str, Any]) -> dict[int, bytes] | None:
        sent = _by_node(answer, "letters")
        return sent if set(sent) == set(self.keys) - {node} else None

    def _vector(self, _: int, answer: Mapping[str, Any]) -> Sums | None:
        vector = answer.get("sums")
        # Places that mean something else at that node would be added up as if they meant the same.
        same = answer.get("domain", b"") == self.domain
        if not same or not isinstance(vector, bytes) or len(vector) != 4 * self.length:
            return None
        return np.frombuffer(vector, np.dtype("<u4")).astype(np.uint32)

    def _secret(self, node: int, shares: list[bytes]) -> bytes:
        """Return a node's key or seed from its shares, checked against its first message."""
        try:
            # Shamir: any `least` shares give the secret, fewer reveal nothing.
            secret: bytes = combine_shares(shares[: self.least])
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

    def _stage(
        self, stage: str, told: Answers, read: Callable[[int, Mapping[str, Any]], Read | None], least: int = 0
    ) -> dict[int, Read]:
        """Return what each node answered in a stage, and add a complaint for every node without an accepted answer."""
        answers, kept = self.ask(stage, told), {}
        for node, answer in sorted(answers.items()):
            found = read(node, answer)
            if found is not None:
                kept[node] = found
        for node in told:
            if node not in kept:
                why = "refused or failed" if node in answers else "lost or late"
                why = "what it sent does not fit the round" if answers.get(node) else why
                what = "counted, but did not help to unmask" if stage == "unmasking" else "is left out"
                self.complaints.append(f"node {node} {what}: {why}")
        least = max(LEAST_NODES, least or self.least)
        if len(kept) < least:
            raise InputError(
                f"{len(kept)} of {len(told)} nodes are left and {least} are needed to unmask the total. The round "
                "is given up and nothing is released; start a new run when the nodes are back."
            )
        return kept


def _public_keys(_: int, answer: Mapping[str, Any]) -> tuple[bytes, bytes, bytes] | None:
    """Return the mask key, the letter key, and the commitment of a node to its own mask."""
    parts = _texts(answer, "keys")
    return (parts[0], parts[1], parts[2]) if [len(part) for part in parts] == [KEY] * 3 else None


def _by_node(answer: Mapping[str, Any], name: str) -> dict[int, bytes]:
    return dict(zip(answer.get("nodes", ()), _texts(answer, name), strict=False))


def _texts(answer: Mapping[str, Any], name: str) -> list[bytes]:
    """Return a list of bytes that a node sent, or nothing where it sent something else."""
    sent = answer.get(name)
    return list(sent) if isinstance(sent, list | tuple) and all(isinstance(each, bytes) for each in sent) else []
