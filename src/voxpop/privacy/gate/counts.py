"""The gates of counts of public grams (with a private choice of the limit), of rankings, and of keys with counts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import pyarrow as pa

from voxpop.kernels.arrays import Bools, Int64s
from voxpop.kernels.proved import proved
from voxpop.privacy.decisions import CellNoise, GumbelNoise
from voxpop.privacy.gate.gate import Gate, refused
from voxpop.privacy.gate.rounds import AdaptiveGate
from voxpop.privacy.parameters import KeyParts
from voxpop.privacy.parts import FEW_KEYS, PART_WEIGHTS, PartNumbers
from voxpop.privacy.passes import Certificate, CountsProof, KeysProof, PicksProof
from voxpop.privacy.secret import Secret
from voxpop.privacy.truncated import KeyNumbers, WholeNoise
from voxpop.privacy.weightings.holders import UNIT, ClassShares, HolderShares, WholeShares


@final
@dataclass(frozen=True, slots=True, eq=False)
class ListedGrams:
    """The grams of one length that a walk keeps: the listed grams and the parts of longer listed grams.

    Attributes:
        length: The number of tokens of each gram.
        names: int64, in increasing order. A name is a rank at length 1, and `left * 2^32 + partner` for longer grams.
        words: At length 1, the words in the order of their bytes; empty for longer grams.
        before: The number of grams that were kept at the previous length.
        ranks: int64 (listed grams), the rank of each gram among the names.
        counted: bool (kept grams), whether each gram is on the list, or None if all are on the list.
    """

    length: int
    names: Int64s
    words: pa.LargeStringArray
    before: int
    ranks: Int64s
    counted: Bools | None


@dataclass(frozen=True, slots=True, eq=False)
class _Everything:
    """The subset that contains every pair of kept grams, because grams that are not on the list are dropped afterwards.

    Attributes:
        need: int64 by kept gram, the minimum estimate of a partner, which is always 0.
        estimates: int64 by kept gram, the estimate of the gram as a partner, which is always 0.
        single: Always False, because partners are grams.
    """

    need: Int64s
    estimates: Int64s
    single: bool = False


def _walked(walk: Any, lists: Iterable[ListedGrams], lengths: int) -> Iterator[ListedGrams]:
    """Yield the grams of each length after the walk has been restricted to them.

    Each length is yielded at most once, because noise must not be reused.
    """
    for place, listed in enumerate(lists):
        if listed.length != place + 1 or place >= lengths:
            raise refused("grams would be counted that the certificate does not contain")
        if place:
            walk.extend(_Everything(*np.zeros((2, listed.before), np.int64)))
            walk.keep(listed.names)
        else:
            walk.keep_words(listed.words)
        yield listed


@final
class CountsGate(Gate[CountsProof]):
    """The gate of noisy counts of public grams (docs/privacy/counts.md)."""

    _proves = CountsProof

    def __init__(self, text: str, secret: Secret) -> None:
        super().__init__(text, secret)
        # If an earlier release of the same plan made a choice, it is discarded, because this release makes a new
        # choice.
        self.proof = replace(self.proof, chosen=None)

    def open(self, engine: Any, lists: Iterable[ListedGrams]) -> None:
        """Start the release with the private data.

        Args:
            engine: The private data.
            lists: The grams, by length, starting with length 1.
        """
        self._begin("open")
        self._walk = engine.length_walk()
        self._walked = _walked(self._walk, lists, len(self.proof.menu[0].limits))
        self._next = next(self._walked, None)
        if not self.proof.classes_sigma:
            self.proof = replace(self.proof, chosen=0)

    @proved("counts.md#the-choice-of-the-limit")
    def classes(self, edges: tuple[int, ...]) -> Int64s:
        """Return the noisy number of users in each class. One user changes the number of one class by one.

        Proof: "The class is a function of the user's own data and of S, so one user moves the counts by one unit
        vector."

        Args:
            edges: The numbers of words at which new classes begin.
        """
        if not self.proof.classes_sigma or self._next is None:
            raise refused("the certificate contains no choice")
        self._begin("classes", "open")
        self._note("classes")
        noise = CellNoise(self.proof.classes_sigma, 1, 1, self._secret, "noise/count classes")
        shares, size = ClassShares(edges, self._next.counted), int(self._next.names.size)
        weights = self._walk.weigh(shares, max(1, size), self._secret, "count classes")
        counts: Int64s = weights.measured(noise, 1 + len(edges))
        return counts

    @proved("counts.md#the-choice-of-the-limit")
    def choose(self, place: int) -> None:
        """Choose the limits at an index of the menu. The index must be a function of the noisy classes.

        Proof: "Given the noisy counts, the limits are the same with and without the user."
        """
        self._begin("choose", "classes")
        if not 0 <= place < len(self.proof.menu):
            raise refused("a limit was chosen that the certificate does not contain")
        self.proof = replace(self.proof, chosen=place)

    @proved("counts.md#the-mechanism")
    def counted(self) -> Int64s:
        """Return the noisy number of users of each gram of the next length, in the order of the list.

        Proof: "Gaussian noise of the same sigma is added to the sum of shares of every gram of S, with or without
        users"
        """
        listed = self._next
        if listed is None:
            raise refused("more lengths would be counted than there are lists")
        name, size = f"count {listed.length}", int(listed.names.size)
        self._begin(name, "open", *(["choose"] if self.proof.classes_sigma else []))
        chosen = self.proof.menu[self.proof.chosen or 0]
        # Parts of longer grams that are not on the list are not counted and do not count towards the limit.
        shares = HolderShares(chosen.limits[listed.length - 1], listed.counted)
        self._note("count", {"length": listed.length, "sigma": chosen.sigma})
        # The limit is the number of grams, so no sample is drawn.
        weights = self._walk.weigh(shares, max(1, size), self._secret, name)
        noise = CellNoise(chosen.sigma, UNIT, UNIT, self._secret, f"noise/{name}")
        # Read every kept gram, with or without users. Grams that are not on the list are dropped.
        counts: Int64s = weights.measured(noise, size)[listed.ranks]
        self._next = next(self._walked, None)
        return counts


@final
class PicksGate(Gate[PicksProof]):
    """The gate of the ranking of the largest counts (docs/privacy/top.md)."""

    _proves = PicksProof

    @proved("top.md#proof")
    def first(self, engine: Any, lists: Iterable[ListedGrams], lengths: int) -> Int64s:
        """Return the positions of the first grams of the ranking, in order, without sums or counts.

        Proof: "One more user raises some of the u_i by exactly 1 and lowers none."

        Args:
            engine: The private data.
            lists: The grams, by length, starting with length 1.
            lengths: The number of lengths.
        """
        self._begin("first")
        self._note("picks")
        walk, parts = engine.length_walk(), [np.empty(0, np.int64)]
        for listed in _walked(walk, lists, lengths):
            # Each user counts in full for any number of grams, so one user changes each count by at most 1.
            shares, size = HolderShares(max(1, int(listed.ranks.size)), listed.counted), int(listed.names.size)
            weights = walk.weigh(shares, max(1, size), self._secret, f"count {listed.length}")
            noise = GumbelNoise(self.proof.rate, UNIT, self._secret, f"noise/top {listed.length}")
            parts.append(weights.measured(noise, size)[listed.ranks])
        noisy = np.concatenate(parts)
        if noisy.size > self.proof.candidates:
            raise refused("more grams would be ranked than the certificate contains")
        # Selecting the k largest counts with Gumbel noise is equivalent to k exponential mechanisms in sequence.
        return np.argsort(-noisy, kind="stable")[: self.proof.picks]


@final
class KeysGate(Gate[KeysProof]):
    """The gate of keys with counts, for the choice of an entry, noisy counts, and the rest (docs/privacy/keys.md)."""

    _proves = KeysProof

    def __init__(self, text: str, secret: Secret) -> None:
        super().__init__(text, secret)
        self._inner: AdaptiveGate | None = None
        # If an earlier release of the same plan made a choice, it is discarded, because this release makes a new
        # choice.
        self.proof = replace(self.proof, chosen=None)
        if self.proof.rounds is not None:
            self._inner = AdaptiveGate(Certificate(self._claim, self.proof.rounds).to_json(), secret)
            self.proof = replace(self.proof, rounds=self._inner.proof)

    @proved("keys.md#charges")
    def classes(self, engine: Any) -> Int64s:
        """Return the noisy number of users in each class. The classes are ranges of the number of distinct keys.

        Proof: "one more user adds 1 to one class"
        """
        if not self.proof.edges:
            raise refused("the certificate contains no choice")
        self._begin("classes")
        self._note("classes")
        noise = WholeNoise(self.proof.choosing, self._secret, "noise/classes of keys")
        sizes = engine.pools(self._secret).sizes(self.proof.edges)
        counts: Int64s = sizes.measured(noise, len(self.proof.edges) + 1)
        return counts

    @proved("keys.md#charges")
    def choose(self, place: int) -> None:
        """Choose the entry at an index of the menu.

        Proof: "Given the noisy numbers of users in classes, both collections run the same entry."

        The index must be a function of the noisy classes. If the certificate contains adaptive rounds, the last index
        refers to them.
        """
        self._begin("choose", *(["classes"] if self.proof.edges else []))
        if not 0 <= place < self._first_of_rounds + (self._inner is not None):
            raise refused("an entry was chosen that the certificate does not contain")
        self.proof = replace(self.proof, chosen=place)

    @proved("keys.md#one-number-per-key")
    def numbers(self, engine: Any) -> tuple[Any, Int64s]:
        """Return the released keys, in the order of their bytes, and their noisy counts of users.

        Proof: "Each user keeps at most L keys"
        """
        self._begin("numbers", "choose")
        place = self.proof.chosen
        if place is None or place >= len(self.proof.menu):
            raise refused("keys would be numbered that the chosen entry does not contain")
        noise = self.proof.menu[place]
        self._note("numbers", {"limit": noise.limit})
        name = f"keys {noise.limit}"
        # At most `limit` keys of each user are drawn, and the user counts in full for each of them.
        weights = engine.weigh(HolderShares(noise.limit), noise.limit, self._secret, name)
        none = np.empty(0, np.int64)
        ids, levels = weights.noisy_levels(KeyNumbers(noise, UNIT, self._secret, f"noise/{name}"), none, none)
        self._begin("released")
        return weights.texts(ids), levels + (noise.reach - 1)

    @property
    def _first_of_rounds(self) -> int:
        """The index of the entry for adaptive rounds, which follows the menu and the parts."""
        return len(self.proof.menu) + (self.proof.parts is not None)

    @proved("keys.md#users-in-parts")
    def few(self, engine: Any) -> tuple[Any, Int64s]:
        """Return the keys released by the counts of users with one or two keys, in byte order, and their noisy counts.

        Proof: "only users with one or two keys"
        """
        self._begin("few", "choose")
        parts = self._parts_of("keys")
        self._note("few")
        # Three keys are drawn for each user with three or more keys, and each of these has weight 0.
        weights = engine.weigh(WholeShares(PART_WEIGHTS), FEW_KEYS + 1, self._secret, "few keys")
        none = np.empty(0, np.int64)
        ids, users = weights.noisy_levels(PartNumbers(parts, self._secret, "noise/keys"), none, none)
        return weights.texts(ids), users

    @proved("keys.md#users-in-parts")
    def sizes(self, engine: Any, tokens: Any, edges: tuple[int, ...]) -> Int64s:
        """Return the noisy number of users with three or more keys in each class, by their number of released keys.

        Proof: "Given these keys, the user adds 1 to one of the classes"

        Args:
            engine: The private data.
            tokens: The released keys.
            edges: The numbers of released keys at which new classes begin.
        """
        self._begin("sizes", "few")
        parts, self._released = self._parts_of("users of more keys"), len(tokens)
        self._walk = engine.with_more(FEW_KEYS).length_walk()
        self._walk.keep_words(tokens)
        self._note("sizes")
        noise = WholeNoise(parts.sizing, self._secret, "noise/sizes of keys")
        shares = ClassShares(edges)
        sizes = self._walk.weigh(shares, max(1, self._released), self._secret, "sizes of keys")
        counts: Int64s = sizes.measured(noise, len(edges) + 1)
        return counts

    @proved("keys.md#users-in-parts")
    def more(self, limit: int) -> Int64s:
        """Return, for each released key, the noisy number of its users who have three or more keys.

        Proof: "at most l of the user's released keys are drawn by a keyed hash"

        Args:
            limit: The maximum number of released keys per user, which follows from the noisy sizes.
        """
        self._begin("more", "sizes")
        parts = self._parts_of("users of more keys")
        if limit < 1:
            raise refused("the number of keys that users count would be out of range")
        self._begin("released")
        self._note("more", {"limit": limit})
        noise = WholeNoise(parts.rate_of_more(limit), self._secret, "noise/more keys")
        weights = self._walk.weigh(WholeShares((0, 1)), limit, self._secret, "more keys")
        counts: Int64s = weights.measured(noise, self._released)
        return counts

    def _parts_of(self, what: str) -> KeyParts:
        """Return the entry of the certificate for users in parts, if it was chosen."""
        if self.proof.parts is None or self.proof.chosen != len(self.proof.menu):
            raise refused(f"{what} would be counted that the chosen entry does not contain")
        return self.proof.parts

    @proved("keys.md#charges")
    def rounds(self) -> AdaptiveGate:
        """Return the gate of rounds and counts, if they were chosen.

        Proof: "Given the classes, rounds and counts have, for every epsilon' > 0, a delta of at most"
        """
        self._begin("rounds", "choose")
        if self._inner is None or self.proof.chosen != self._first_of_rounds:
            raise refused("rounds would run that the chosen entry does not contain")
        self._begin("released")
        return self._inner

    @proved("keys.md#the-rest")
    def rest(self, engine: Any, listed: Any, sets: int, unit: int) -> Int64s:
        """Return noisy sums of users' shares of rows with released keys and of other rows, two sums per set, in units.

        Proof: "one more user adds at most 1 to the two sums of each set"

        Args:
            engine: The private data.
            listed: The released keys.
            sets: The number of sets of keys.
            unit: The number of units in a share of 1.
        """
        self._begin("rest", "released")
        inner = self._inner if self.proof.chosen == self._first_of_rounds else None
        if inner is not None and "released" not in inner._ran:
            raise refused("the shares of rows would be measured between rounds, for which there is no proof")
        if not self.proof.rest or sets > self.proof.sets or unit < 1:
            raise refused("the shares of rows would be measured with less noise than was charged for")
        self._note("rest")
        noise = WholeNoise(self.proof.rest / (self.proof.sets * unit), self._secret, "noise/rest of keys")
        sums: Int64s = engine.row_shares(listed, sets, unit).measured(noise, 2 * sets)
        return sums

    @property
    def record(self) -> tuple[str, str]:
        """The certificate with the chosen entry, and the transcript with the passes of the rounds, as JSON."""
        inner = self._inner
        if inner is None or self.proof.chosen != self._first_of_rounds:
            return super().record
        self.proof = replace(self.proof, rounds=inner.proof)
        rest = [each for each in self._transcript if each["pass"] == "rest"]
        before = [each for each in self._transcript if each["pass"] != "rest"]
        self._transcript = [*before, *inner._transcript, *rest]
        self._inner = None
        return super().record
