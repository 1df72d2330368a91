"""The double line: the only place where counts of holders become public."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from voxpop.arrays import Int64s
from voxpop.corpus.engine import Engine, Noise, check_engine, check_ordered
from voxpop.counts.holders import weights_of_holders
from voxpop.counts.listed import ListedGrams
from voxpop.counts.shares import UNIT
from voxpop.privacy.decisions import CellNoise
from voxpop.privacy.secret import Secret
from voxpop.release.tally import Tally

if TYPE_CHECKING:
    from voxpop.counts.plan import CountsPlan


def release_counts(plan: "CountsPlan", corpus: Engine, seed: int | None) -> Tally:
    """Weigh every released gram, add noise to every one, and round to whole users; see `Counts.release`."""
    check_engine(corpus)
    secret = Secret.of(seed)
    users = [np.empty(0, np.int64), *_counted(plan, corpus, secret)]
    guarantee = replace(plan.guarantee, private=secret.private)
    return Tally.of(plan.grams, np.concatenate(users), plan.error, plan, guarantee)


def _counted(plan: "CountsPlan", corpus: Engine, secret: Secret) -> Iterator[Int64s]:
    """Yield for each length the noisy counts of its grams, in canonical order."""
    if len(plan.limits) > 1:
        check_ordered(corpus)
    for listed, weights in weights_of_holders(corpus, plan.grams, plan.limits, secret):
        yield weights.measured(_noise(plan, listed, secret), listed.size)[listed.ranks]


def _noise(plan: "CountsPlan", listed: ListedGrams, secret: Secret) -> Noise:
    """Return noise for every gram of the list, whether anybody holds it or not, by its place on the list."""
    noise = CellNoise(plan.sigma, UNIT, UNIT, secret, f"noise/count {listed.length}")
    return noise if listed.counted is None else PlacedNoise(noise, listed.places)


@dataclass(frozen=True, slots=True, eq=False)
class PlacedNoise:
    """Noise that knows what is kept by its place on a public list.

    Attributes:
        noise: by place.
        places: int64 by rank, all different.
    """

    noise: CellNoise
    places: Int64s

    def __call__(self, weights: Int64s, names: Int64s) -> Int64s:
        """Return noisy weights by rank."""
        return self.noise(weights, self.places[names])

    def restricted(self) -> "PlacedNoise":
        """Return noise that can be sent away and knows no other purpose."""
        return replace(self, noise=self.noise.restricted())
