"""The gate of a series of nights.

Users pay before noise is drawn. A new item receives the noise of past nights before its state is computed.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, final

import numpy as np

from voxpop.kernels.arrays import Bytes, Int32s, Int64s, Uint64s
from voxpop.kernels.proved import proved
from voxpop.privacy.certificate import night_charge, night_setting
from voxpop.privacy.gate.gate import Gate, admitted_level, refused
from voxpop.privacy.individual import WHOLE
from voxpop.privacy.passes import NightsProof
from voxpop.privacy.secret import Source
from voxpop.privacy.upcrossing import NightDecision, NightReading, noise_of
from voxpop.privacy.weightings.builtin import PolicyGaussian
from voxpop.privacy.weightings.rule import RuleSetting

_States = Callable[[Int64s, Int64s, Int64s], Bytes]
"""A function that maps scores, nights of decision and levels to the state of each item: 0 decided, 1 resting, 2 active.
"""


@final
class NightsGate(Gate[NightsProof]):
    """The gate of a series. Its state is stored between nights (docs/privacy/series.md)."""

    _proves = NightsProof

    @proved("series.md#proof")
    def begin(self, pools: Any, corpus: Any, night: int, states: _States, since: int) -> None:
        """Add the items of a night to the pools with their past noise, and then charge the users.

        Proof: "By induction over nights, the outputs, rows, pools, payments and remaining budgets of all users except x
        are equal."

        Args:
            pools: The private state.
            corpus: The rows of the night.
            night: The number of the night, starting at 1.
            states: The function that computes the states of items from their scores, independently of their users.
            since: The first night whose items get weight even if they are resting.
        """
        self._check("payment", night)
        past = self._secret.restrict(*map(noise_of, range(1, night)))
        known = partial(_past_noise, self.proof, past, night)
        pools.take(corpus, self._secret, night, self.proof.pool, WHOLE, known)
        pools.pay(night_charge(self.proof, night), states, since)

    @proved("series.md#the-mechanism")
    def complete(self, pools: Any, night: int, states: _States, since: int) -> None:
        """Weigh the items as far as users have paid for it, and read the scores. Both steps depend only on the state.

        Proof: "Users move the weights of these items by l2-descent with sensitivity S (paid / p_t)^(1/2), minus the
        rounding error."
        """
        self._check("reading", night)
        add = partial(_add, night_setting(self.proof, night))
        self._read(pools, night, pools.weigh(night_charge(self.proof, night), states, since, add))

    @proved("series.md#the-mechanism")
    def missed(self, pools: Any, night: int) -> None:
        """Process a night without a run, which adds noise but no weights.

        Proof: "On a night without a run, weights are 0, but noise is added."
        """
        self._check("reading", night)
        self._read(pools, night, None)

    @proved("series.md#the-mechanism")
    def _read(self, pools: Any, night: int, weights: Any) -> None:
        """Add the noisy weights of a night to the scores of all items, with or without users, and release items.

        Proof: "For every item that was ever in a pool, y_t is weight plus noise, rounded to whole cells."
        """
        self._note("night", {"night": night})
        pools.read(_reading(self.proof, self._secret, night), weights, self._secret, _decision(self.proof, night))
        _settle(self.proof, pools, night)

    def _check(self, step: str, night: int) -> None:
        if not 1 <= night <= len(self.proof.costs):
            raise refused("there would be more nights than the certificate contains")
        self._begin(f"{step} {night}")


@proved("series.md#the-mechanism")
def _reading(proof: NightsProof, secret: Source, night: int) -> NightReading:
    """Return the noise of a night with the numbers of the certificate.

    Proof: "For every item that was ever in a pool, y_t is weight plus noise, rounded to whole cells."
    """
    at = night - 1
    return NightReading(night, proof.factors[at], proof.sigmas[at], 1 << proof.bits, proof.cell, secret)


@proved("series.md#the-mechanism")
def _decision(proof: NightsProof, night: int) -> NightDecision:
    """Return the decisions of a night with the thresholds of the certificate.

    Proof: "The item is released if the score reaches theta_t."
    """
    decision, known = NightDecision(night, proof.thresholds[night - 1]), proof.known
    if known is None:
        return decision
    return replace(decision, lowest=known.lowest[night - 1], step=known.steps[night - 1], levels=len(known.tails))


@proved("series.md#public-lists")
def _settle(proof: NightsProof, pools: Any, night: int) -> None:
    """Freeze and release listed items after the scores of a night are read.

    Proof: "No weight depends on the levels of empty items"
    """
    known = proof.known
    if known is None:
        return
    unlisted, reached = pools.reached(len(known.tails))
    # Items from the level `frozen` on get no more weight. This level depends only on the number of released unlisted
    # items.
    frozen = min(admitted_level(known, unlisted, np.zeros_like(reached)), len(known.tails))
    pools.settle(frozen, admitted_level(known, unlisted, reached), night)


@proved("series.md#proof")
def _past_noise(proof: NightsProof, secret: Source, night: int, names: Uint64s) -> Int64s:
    """Return the scores of new items, which are the sums of the noise of all earlier nights.

    Proof: "Under P, novel readings are pure noise and independent of all outputs, and therefore of the choice of items"
    """
    scores, none = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    for earlier in range(1, night):
        scores = _reading(proof, secret, earlier)(none, names, scores)
    return scores


def _add(setting: RuleSetting, histogram: Int64s, items: Int32s, starts: Int64s, bounds: Int64s) -> None:
    PolicyGaussian().add_within(histogram, items, starts, setting, bounds)
