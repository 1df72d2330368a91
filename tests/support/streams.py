"""Streams of rows and plans for tests of series."""

from dataclasses import replace

import numpy as np
import polars as pl

import voxpop as vp


def rows_of(people):
    """Return the corpus of one night from a list of words for each user key."""
    pairs = [(user, word) for user, words in people.items() for word in words]
    table = pl.DataFrame(pairs, schema={"who": pl.Int64, "what": pl.String}, orient="row")
    return vp.read(table, user="who", items="what")._engine


WORDS = [f"w{number}" for number in range(9)]


def some_plan(rng, nights, pool, tried):
    """Return a plan with low thresholds and near cutoffs, so that every case occurs within a few nights."""
    plan = vp.Items(max_items_per_user=pool).plan_series(vp.Budget(3, 1e-3), nights)
    total = np.sqrt(np.cumsum(np.square(plan.spreads)))
    proof = replace(
        plan.proof,
        cutoffs=tuple(int(rng.uniform(0.3, 4) * 2**plan.proof.bits) for _ in range(nights)),
        thresholds=tuple(int(each) for each in total * rng.uniform(0.3, 3, nights)),
    )
    rests = tuple(int(each) for each in total * rng.uniform(-1.5, 2, nights))
    return replace(plan, proof=proof, rests=rests, tried=tried)
