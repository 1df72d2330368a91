"""The paper's baselines, which are set unions over grams, without pruning (DPNE, Section 3.1.2).

All three are private, because each gram is an item and users weigh all grams that they wrote. They release fewer grams,
since most of a user's weight is given to grams without other users.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.baselines.gaussian import published_scales
from voxpop.engine.local.weigh import Holdings, weigh
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.mechanisms.ngrams.candidates import Candidates, Pairs
from voxpop.privacy.budget import Budget
from voxpop.privacy.decisions import ReleaseDecisions, ThresholdRule
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import Weighted
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting
from voxpop.reading.arrow import array_of
from voxpop.release.release import Release
from voxpop.release.result import StoredPlan
from voxpop.release.table import table_of_tokens

if TYPE_CHECKING:
    from voxpop.engine.local.corpus import LocalCorpus
    from voxpop.engine.local.length_walk import MemoryLengthWalk


@dataclass(frozen=True)
class AllGrams:
    """All grams of a corpus up to a length, with ids. They are private and take 4 bytes per token and length.

    Attributes:
        corpus: The source of the grams.
        ids: int32 by position, for each length, or -1 at positions where no gram of that length starts.
        names: int64 by id, for each length from 2 on, the ids of its prefix and its suffix, which are one token
            shorter.
    """

    corpus: "LocalCorpus"
    ids: tuple[Int32s, ...]
    names: tuple[Int64s, ...]

    @staticmethod
    def of(corpus: "LocalCorpus", max_length: int) -> "AllGrams":
        """Number the grams of lengths 1 to `max_length`."""
        levels = corpus.length_walk()
        ids, names = [corpus.tokens], []
        size = len(corpus.vocabulary)
        _keep_all(levels)
        for _ in range(1, max_length):
            nothing = np.zeros(size, np.int64)
            levels.extend(Candidates(Pairs(nothing, nothing, nothing, single=False), nothing))
            here, own = _keep_all(levels)
            if own is None:
                raise InternalError("grams above length 1 have no names.")
            ids.append(here.copy())
            names.append(own)
            size = own.size
        return AllGrams(corpus, tuple(ids), tuple(names))

    def size(self, length: int) -> int:
        """Return the number of distinct grams of a length."""
        return len(self.corpus.vocabulary) if length == 1 else self.names[length - 2].size

    def order(self, length: int) -> Int64s:
        """Return the ids of a length from 2 on in increasing order of names. The order is computed once."""
        if length not in self._orders:
            self._orders[length] = np.argsort(self.names[length - 2])
        return self._orders[length]

    @cached_property
    def _orders(self) -> dict[int, Int64s]:
        return {}

    def tokens(self, length: int, ids: Int64s) -> Int32s:
        """Return the tokens of grams, one row for each gram."""
        if length == 1:
            return ids.astype(np.int32)[:, None]
        names = self.names[length - 2][ids]
        prefixes, suffixes = self.tokens(length - 1, names >> 32), self.tokens(length - 1, names & (2**32 - 1))
        return np.hstack([prefixes, suffixes[:, -1:]])

    def holdings(self, lengths: list[int]) -> Holdings:
        """Return the grams of each user with these lengths.

        The ids of later lengths follow the ids of earlier lengths.
        """
        first = np.cumsum([0, *(self.size(length) for length in lengths)])
        columns = [
            np.where(self.ids[length - 1] >= 0, self.ids[length - 1] + start, -1).astype(np.int32)
            for length, start in zip(lengths, first, strict=False)
        ]
        ids = np.stack(columns, axis=1).ravel()
        return Holdings(ids, self.corpus.user_start * len(lengths), self.corpus.user_key, int(first[-1]))


def dpsu_all(grams: AllGrams, budget: Budget, limit: int, seed: int | None = None) -> Release:
    """Release grams of all lengths by one set union that treats all lengths in the same way.

    Args:
        grams: The grams of the corpus.
        budget: The epsilon and delta that the release may spend.
        limit: The maximum number of grams per user and length. The limit of the union is this times the number of
            lengths.
        seed: A seed, which makes the release reproducible and NOT private.
    """
    lengths = list(range(1, len(grams.ids) + 1))
    return _union(grams, budget, "DPSU-all", [lengths], limit * len(lengths), seed)


def dpsu_even(grams: AllGrams, budget: Budget, limit: int, seed: int | None = None) -> Release:
    """Release grams by one set union for each length, with an even share of the budget (see `dpsu_all`)."""
    return _union(grams, budget, "DPSU-even", [[length] for length in range(1, len(grams.ids) + 1)], limit, seed)


def dpsu_single(grams: AllGrams, budget: Budget, length: int, limit: int, seed: int | None = None) -> Release:
    """Release grams of one length by a set union with the whole budget (see `dpsu_all`)."""
    return _union(grams, budget, f"DPSU-single, length {length}", [[length]], limit, seed)


def _union(grams: AllGrams, budget: Budget, name: str, parts: list[list[int]], limit: int, seed: int | None) -> Release:
    """Run weighted set unions with Gaussian noise and the paper's accounting over parts of the lengths."""
    secret = Secret.of(seed)
    setting = RuleSetting(limit, 2)
    scales = published_scales(budget, limit, (1 / len(parts),) * len(parts))
    rows: list[Int32s] = []
    for part, scale in zip(parts, scales, strict=True):
        rule = ThresholdRule("gaussian", scale.scale, round(scale.threshold * setting.unit), 1 / setting.unit)
        pass_name = f"{name}/{part[0]}"
        histogram = weigh(grams.holdings(part), CalibratedRule(Weighted(), setting), limit, None, secret, pass_name)
        ids = histogram.chosen(ReleaseDecisions(rule, secret, f"noise/{pass_name}"))
        edges = np.cumsum([0, *(grams.size(length) for length in part)])
        for length, low, high in zip(part, edges[:-1], edges[1:], strict=True):
            rows.append(grams.tokens(length, ids[(ids >= low) & (ids < high)] - low))
    numbers = {"mechanism": name, "limit": limit, "sigma": scales[0].scale, "threshold": scales[0].threshold}
    guarantee = Guarantee(budget.epsilon, budget.delta, private=secret.private)
    # Only tokens that occur get a rank, in the order of the vocabulary.
    used = np.unique(np.concatenate([np.empty(0, np.int32), *(each.ravel() for each in rows)]))
    ranked = [np.unique(np.searchsorted(used, each).astype(np.int32), axis=0) for each in rows]
    table = table_of_tokens(grams.corpus.vocabulary.take(array_of(used)), ranked)
    return Release(table, StoredPlan(numbers), guarantee)


def _keep_all(levels: "MemoryLengthWalk") -> tuple[Int32s, Int64s | None]:
    """Keep every gram that occurs, with its current number, in a walk that otherwise keeps only released grams.

    Returns:
        int32 by position, the number of the gram that starts there, which `extend` overwrites. The second value is the
        names of the numbers, or None at length 1.
    """
    if levels._ids is None:
        levels._ids = np.array(levels._tokens)
    names, levels._names = levels._names, None
    return levels._ids, names
