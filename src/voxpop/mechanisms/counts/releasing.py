"""The privacy boundary of counts and rankings: noise is added to every count, and only the result is returned."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from voxpop.engine.contract import Noise, check_engine, check_ordered
from voxpop.engine.data import Corpus
from voxpop.kernels.arrays import Int64s
from voxpop.mechanisms.counts.constants import UNIT
from voxpop.mechanisms.counts.listed import ListedGrams, sizes_of, weights_of_holders
from voxpop.privacy.decisions import CellNoise, GumbelNoise
from voxpop.privacy.secret import Secret
from voxpop.release.tally import Ranking, Tally

if TYPE_CHECKING:
    from voxpop.mechanisms.counts.plan import CountsPlan, TopPlan
    from voxpop.release.release import Release


def release_counts(plan: "CountsPlan", data: Corpus, seed: int | None) -> Tally:
    """Weigh every released gram, add noise to every one, and round to whole users; see `Counts.release`."""
    secret = Secret.of(seed)
    guarantee = plan.guaranteed(private=secret.private)

    def noise(length: int) -> Noise:
        return CellNoise(plan.sigma, UNIT, UNIT, secret, f"noise/count {length}")

    users = measured_holders(data, plan.grams, plan.limits, secret, noise)
    return Tally(plan.grams, users, plan.error, plan, guarantee)


def release_top(plan: "TopPlan", data: Corpus, seed: int | None) -> Ranking:
    """Count all who hold each released gram, add noise to every count, and return the first; see `Top.release`."""
    secret = Secret.of(seed)
    guarantee = plan.guaranteed(private=secret.private)

    def noise(length: int) -> Noise:
        return GumbelNoise(plan.rate, UNIT, secret, f"noise/top {length}")

    noisy = measured_holders(data, plan.grams, sizes_of(plan.grams), secret, noise)
    # The k largest of counts with Gumbel noise: k exponential mechanisms one after the other (docs/privacy/top.md,
    # "Proof").
    first = np.argsort(-noisy, kind="stable")[: plan.picks]
    return Ranking(plan.grams, first, plan, guarantee)


def measured_holders(
    data: Corpus, release: "Release", limits: Sequence[int], secret: Secret, noise: Callable[[int], Noise]
) -> Int64s:
    """Return the noisy number of users of each gram, in canonical order.

    Args:
        data: the private data.
        release: whose grams are counted.
        limits: for each length, the most grams for which a user counts in full.
        secret: source of draws.
        noise: by length; it is added to every gram of the list, including grams without users.
    """
    corpus = check_engine(data)
    if len(limits) > 1:
        check_ordered(corpus)
    parts = [np.empty(0, np.int64)]
    for listed, weights in weights_of_holders(corpus, release, limits, secret):
        placed = _placed(noise(listed.length), listed)
        # By rank among the grams that the walk kept, then by place on the list: parts that are not on it are dropped.
        parts.append(weights.measured(placed, listed.size)[listed.ranks])
    return np.concatenate(parts)


def _placed(noise: Noise, listed: ListedGrams) -> Noise:
    """Return noise that names each gram by its place on the list, for parts of longer grams have ranks as well."""
    return noise if listed.counted is None else PlacedNoise(noise, listed.places)


@dataclass(frozen=True, slots=True, eq=False)
class PlacedNoise:
    """Noise for kept grams, indexed by their place on a public list.

    Attributes:
        noise: by place.
        places: int64 by rank, all different.
    """

    noise: Noise
    places: Int64s

    def __call__(self, weights: Int64s, names: Int64s) -> Int64s:
        """Return noisy weights by rank."""
        return self.noise(weights, self.places[names])

    def restricted(self) -> "PlacedNoise":
        """Return noise that can be serialized and serves this purpose only."""
        return replace(self, noise=self.noise.restricted())
