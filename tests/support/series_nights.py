"""The steps of one night of a series, for tests that inspect the state between them."""

from functools import partial

from voxpop.engine.local.nights import NightlyPools
from voxpop.mechanisms.series import series
from voxpop.privacy.certificate import night_charge, night_setting
from voxpop.privacy.gate import nights
from voxpop.privacy.passes import Certificate
from voxpop.reading.arrow import string_array


def begun(known=()):
    """Return the state before the first night, with or without a public list."""
    pools = NightlyPools.empty()
    if known:
        pools.recognise([string_array(known)])
    return pools


def gate_of(plan, secret):
    """Return the gate of a series, even for a plan that no budget permits."""
    return nights.NightsGate(Certificate(plan._claim, plan.proof).to_json(), secret)


def begin_night(plan, pools, secret, corpus, night):
    """Add items to the pools, and charge users."""
    gate_of(plan, secret).begin(pools, corpus, night, *series._tonight(plan, night))


def weights_of(plan, pools, night):
    """Return the weights of a night after users have paid for the night."""
    proof = plan.proof
    add = partial(nights._add, night_setting(proof, night))
    return pools.weigh(night_charge(proof, night), *series._tonight(plan, night), add)


def read_night(plan, pools, secret, night, weights):
    """Add noisy weights to the scores, and release items."""
    gate_of(plan, secret)._read(pools, night, weights)


def reading(plan, secret, night):
    """Return the noise of a night."""
    return nights._reading(plan.proof, secret, night)
