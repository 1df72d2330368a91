"""Adaptive rounds of two neighbouring collections, which record the weights of each round and their distance.

The first collection runs the rounds, and the outcome of every item in every round is kept. Its neighbour weighs its own
data, but items that were decided for the first collection get the same outcome. Therefore, both collections have the
same noisy weights of shared items. According to docs/privacy/adaptive.md ("Shared items"), both must decide about the
same items in every round, except items that are only in the pool of the extra user.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from support.exact import By, Exact
from voxpop.kernels.arrays import RELEASED, Bools, Bytes, Floats, Int64s, Texts, Uint64s


@dataclass(slots=True)
class Round:
    """The results of one collection in one round.

    Attributes:
        name: The name of the pass.
        unit: The number of grid units in a weight of 1.
        sigma: The standard deviation of the executed noise, as a weight.
        weights: The private weight of each item that was decided in the round.
        outcomes: The outcomes of the same items, which consist of the score (missing in the first round), the state,
            and the level of listed items.
        answer: The noisy counts for the choice of a limit.
    """

    name: str
    unit: int
    sigma: float
    weights: dict[Hashable, int] = field(default_factory=dict)
    outcomes: dict[Hashable, tuple[Any, ...]] = field(default_factory=dict)
    answer: list[int] = field(default_factory=list)

    def apart(self, other: "Round") -> float:
        """Return the Euclidean distance from the weights of a neighbour, including items that only one of them has."""
        items = self.weights.keys() | other.weights.keys()
        gaps = [self.weights.get(item, 0) - other.weights.get(item, 0) for item in items]
        return float(np.linalg.norm(np.array(gaps, np.float64))) / self.unit

    def released(self) -> set[Hashable]:
        """Return the released items."""
        return {item for item, outcome in self.outcomes.items() if outcome[1] == RELEASED}


class WatchedPools:
    """Pools that record the results of every round.

    Args:
        pools: The pools that weigh.
        passes: The list to which rounds are added.
        path: The passes of another release, which provide the outcomes of these pools. If the path is empty, the pools'
            own outcomes are used.
    """

    def __init__(self, pools: Any, passes: list[Any], path: tuple[Any, ...]) -> None:
        self._pools, self._passes, self._path = pools, passes, path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pools, name)

    def sizes(self, edges: Any) -> Any:
        """Count users by class, record the counts, and return them."""
        self._passes.append(Round("limit/length 1", 1, 0.0))
        path = self._path[len(self._passes) - 1] if self._path else None
        return WatchedSizes(self._pools.sizes(edges), self._passes[-1], path)

    def first_round(self, shares: Any, limit: int, decision: Any, pass_name: str) -> None:
        """Weigh the first round, record it, and apply its outcomes."""
        kept, before = self._begin(pass_name, shares, decision.rule.scale)

        def decide(weights: Int64s, ids: Int64s, texts: Texts | None) -> Bools:
            released = decision(weights, ids, texts)
            own = [(0.0, RELEASED if each else 2) for each in released]
            shown = _shown(kept, before, _texts(texts), weights, own)
            return np.array([state == RELEASED for _, state in shown], np.bool_)

        self._pools.first_round(shares, limit, By(decide), pass_name)

    def advance(self, shares: Any, step: Any, pass_name: str) -> None:
        """Weigh a later round, record it, and apply its outcomes."""
        kept, before = self._begin(pass_name, shares, step.sigma)

        def watched(decided: Any) -> By:
            def advanced(weights: Int64s, names: Uint64s, score: Floats) -> tuple[Floats | Bytes, ...]:
                columns = decided(weights, names, score)
                own = list(zip(*(each.tolist() for each in columns), strict=True))
                shown = _shown(kept, before, [tuple(name) for name in names.tolist()], weights, own)
                found = zip(*shown, strict=True) if shown else [[]] * len(columns)
                return tuple(np.array(each, column.dtype) for each, column in zip(found, columns, strict=True))

            return By(advanced)

        by: Any = watched(step)
        by.known = None if step.known is None else watched(step.known)
        self._pools.advance(shares, by, pass_name)

    def _begin(self, pass_name: str, shares: Any, sigma: float) -> tuple[Round, Round | None]:
        self._passes.append(Round(pass_name, shares.setting.unit, sigma))
        return self._passes[-1], self._path[len(self._passes) - 1] if self._path else None


@dataclass(slots=True)
class WatchedSizes:
    """The number of users by class, and the noisy counts for the choice of a limit.

    Attributes:
        sizes: The private numbers of users.
        kept: The round that records the counts.
        before: An earlier round that provides the noisy counts, or None to use new ones.
    """

    sizes: Any
    kept: Round
    before: Round | None

    def measured(self, noise: Any, size: int) -> Int64s:
        """Measure the counts, record them, and return the noisy counts."""
        counts = self.sizes.measured(Exact(), size)
        own = self.sizes.measured(noise, size).tolist() if self.before is None else self.before.answer
        self.kept.sigma, self.kept.answer = noise.sigma, own
        self.kept.weights.update(enumerate(counts.tolist()))
        return np.array(own, np.int64)


def strayed(larger: list[Round], smaller: list[Round]) -> bool:
    """Return whether the rounds decided about different items that other users also have.

    Args:
        larger: The rounds of the collection with the user, beginning with the first.
        smaller: The rounds of the collection without the user.
    """
    # After the first round, items in pools of the smaller collection are shared items.
    shared = {item for each in smaller[1:] for item in each.weights}
    return any(
        one.weights.keys() & shared != other.weights.keys() for one, other in zip(larger[1:], smaller[1:], strict=True)
    ) or not (smaller[0].weights.keys() <= larger[0].weights.keys())


def hit(larger: list[Round], smaller: list[Round]) -> bool:
    """Return whether an item that only the extra user has was released.

    This event is charged to delta, and the two releases then differ.
    """
    return any(one.released() - other.weights.keys() for one, other in zip(larger, smaller, strict=True))


def _shown(
    kept: Round, before: Round | None, items: list[Any], weights: Int64s, own: list[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """Record the decided items, and return their outcomes, or the outcomes that `before` has for the same items."""
    known = {} if before is None else before.outcomes
    outcomes = [known.get(item, each) for item, each in zip(items, own, strict=True)]
    kept.weights.update(zip(items, weights.tolist(), strict=True))
    kept.outcomes.update(zip(items, outcomes, strict=True))
    return outcomes


def _texts(texts: Texts | None) -> list[Any]:
    """Return the bytes of each item."""
    if texts is None:
        return []
    data, starts = texts
    return [bytes(data[first:stop]) for first, stop in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
