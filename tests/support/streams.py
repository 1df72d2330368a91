"""Streams of rows and plans for tests of series."""

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl

import voxpop as vp
from voxpop.privacy.parameters import NightLevels
from voxpop.release.known import KnownItems


def rows_of(people):
    """Return the corpus of one night from a list of words for each user key."""
    pairs = [(user, word) for user, words in people.items() for word in words]
    table = pl.DataFrame(pairs, schema={"who": pl.Int64, "what": pl.String}, orient="row")
    return vp.read(table, user="who", items="what")._engine


WORDS = [f"w{number}" for number in range(9)]


@cache
def planned(pool, nights):
    """Return the plan of a series, which is the same for every stream with this pool and number of nights."""
    return vp.Items(max_items_per_user=pool).plan_series(vp.Budget(3, 1e-3), nights)


def some_plan(rng, nights, pool, tried, known=()):
    """Return a plan with thresholds and cutoffs so low that every case occurs within a few nights.

    With a public list, the plan's rule permits many levels.
    """
    plan = planned(pool, nights)
    total = np.sqrt(np.cumsum(np.square(plan.spreads)))
    proof = replace(
        plan.proof,
        cutoffs=tuple(int(rng.uniform(0.3, 4) * 2**plan.proof.bits) for _ in range(nights)),
        thresholds=tuple(int(each) for each in total * rng.uniform(0.3, 3, nights)),
    )
    rests = tuple(int(each) for each in total * rng.uniform(-1.5, 2, nights))
    plan = replace(plan, proof=proof, rests=rests, tried=tried)
    if not known:
        return plan
    listed = KnownItems.of(known)
    levels = NightLevels(
        listed.listed,
        0.5,
        tuple(int(each) for each in total * rng.uniform(-0.5, 1, nights)),
        tuple(int(each) for each in total * rng.uniform(0.2, 0.6)),
        tuple(sorted(rng.uniform(0.01, 0.5, 4).tolist(), reverse=True)),
    )
    rests = tuple(int(each) for each in total * rng.uniform(-1.5, 1, nights))
    return replace(
        plan,
        mechanism=replace(plan.mechanism, known=listed),
        proof=replace(plan.proof, known=levels),
        listed_rests=rests,
    )
