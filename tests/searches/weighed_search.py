"""A search over neighbouring pairs that includes grouping, bounding, ordering of users and weighing.

`broad_search.py` calls the kernels with sets that are already bounded. Here, users have more items than the limit, and
some items occur twice. The code of a release chooses the items that count and the order of users. All pairs are in one
collection, each with separate users and items.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from searches.sensitivity import rule_of
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.kernels.arrays import Int32s, Int64s, Uint64s
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting, WeightingRule

PAIRS_AT_ONCE = 20_000
ITEMS, USERS = 6, 5


@dataclass(frozen=True, slots=True)
class Weighed:
    """The results of the search.

    Attributes:
        pairs: The number of neighbouring pairs that were weighed.
        distance: The largest distance between the histograms of a pair.
    """

    pairs: int
    distance: float


def search_weighing(weighting: str | WeightingRule, *, norm: int, pairs: int, limit: int = 3, seed: int = 0) -> Weighed:
    """Search neighbouring pairs for the largest distance after `Corpus.weigh`.

    Args:
        weighting: The name of a weighting, or a rule of `voxpop.privacy.weightings`.
        norm: The norm of distances, 1 or 2.
        pairs: The number of pairs, rounded up to whole batches.
        limit: The maximum number of items per user. Users have up to 6 items.
        seed: The seed of the search.

    Returns:
        The largest distance.

    Example:
        >>> search_weighing("weighted", norm=2, pairs=1000).distance <= 1 + 1e-12
        True
    """
    weighting_rule, rng = rule_of(weighting), np.random.default_rng(seed)
    done, worst = 0, 0.0
    while done < pairs:
        size = min(PAIRS_AT_ONCE, pairs)
        cutoff = float(rng.uniform(1.0, 3.0))
        setting = RuleSetting(limit, norm, weighting_rule.bits(cutoff))
        setting = replace(setting, cutoff=round(cutoff * setting.unit) if weighting_rule.sequential else 0)
        worst = max(worst, _farthest(rng, size, CalibratedRule(weighting_rule, setting), limit))
        done += size
    return Weighed(done, worst)


def _farthest(rng: np.random.Generator, pairs: int, shares: CalibratedRule, limit: int) -> float:
    """Weigh one batch with and without the extra users, and return the largest distance of a pair."""
    sizes = rng.integers(0, 2 * ITEMS, pairs * USERS)
    block = np.repeat(np.repeat(np.arange(pairs), USERS), sizes)
    tokens = (block * ITEMS + rng.integers(0, ITEMS, block.size)).astype(np.int32)
    keys = rng.permutation(pairs * USERS).astype(np.uint64)
    stays = np.ones((pairs, USERS), np.bool_)
    stays[np.arange(pairs), rng.integers(0, USERS, pairs)] = False
    secret = Secret.from_seed(int(rng.integers(1 << 40)))
    larger = _weights(tokens, sizes, keys, shares, limit, secret, pairs)
    mine = np.repeat(stays.ravel(), sizes)
    smaller = _weights(tokens[mine], sizes[stays.ravel()], keys[stays.ravel()], shares, limit, secret, pairs)
    apart = (larger - smaller) / shares.setting.unit
    return float(np.linalg.norm(apart, shares.setting.norm, axis=1).max())


def _weights(
    tokens: Int32s,
    sizes: Int64s,
    keys: Uint64s,
    shares: CalibratedRule,
    limit: int,
    secret: Secret,
    pairs: int,
) -> Int64s:
    names = pa.array(np.arange(pairs * ITEMS)).cast(pa.large_string())
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    histogram = LocalCorpus(tokens, starts, keys, names, "items").weigh(shares, limit, secret, "search")
    weights = np.zeros(pairs * ITEMS, np.int64)
    weights[histogram._ids] = histogram._weights
    return weights.reshape(pairs, ITEMS)
