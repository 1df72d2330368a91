"""The privacy boundary of profiles: rounds over all typed keys, then counts and cover of the released keys."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.contract import Engine, check_engine
from voxpop.engine.data import Corpus
from voxpop.mechanisms.profile.constants import CELL, UNIT
from voxpop.mechanisms.rounds.adaptive import released_in_rounds
from voxpop.privacy.decisions import CellNoise
from voxpop.privacy.planned import with_record
from voxpop.privacy.secret import Secret
from voxpop.reading.arrow import array_of, int64_array
from voxpop.release.profile import Cover, Profile
from voxpop.release.registry import configuration
from voxpop.release.release import Release

if TYPE_CHECKING:
    from voxpop.mechanisms.profile.plan import ProfilePlan
    from voxpop.reading.typed_keys import TypedKeys


def release_profile(plan: "ProfilePlan", data: Corpus, seed: int | None) -> Profile:
    """Release the keys, count them, and measure their cover; see `voxpop.profile`."""
    corpus, keys = check_engine(data), plan.mechanism.keys
    secret, guarantee = plan.begin(seed)
    found, ran = released_in_rounds(plan.planned, plan.budget, corpus, secret)
    done = plan if ran is plan.planned else with_record(plan, ran=ran)
    tokens = with_parents(keys, found)
    sets, items = keys.split(tokens)
    columns = {"set": array_of(sets), "item": items}
    error, cover = None, dict[str, Cover]()
    if plan.counting:
        # The registry imports counts, because no mechanism imports another.
        release = Release.from_items(tokens, done, guarantee, corpus.reading)
        counts = configuration("counts")().plan_within(plan.counting, plan.budget, release)
        tally = counts.release(data, seed=seed)
        columns["users"], error = int64_array(tally.users), tally.error
        cover = measured_cover(plan, corpus, tokens, secret)
    return Profile(keys, pa.table(columns), cover, done, guarantee, corpus.reading, error)


def with_parents(keys: "TypedKeys", tokens: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return tokens together with the single values of joint ones, in order of bytes: post-processing."""
    every = pc.unique(pa.concat_arrays([tokens, keys.parents(tokens)]))
    return every.take(pc.array_sort_indices(every.cast(pa.large_binary())))


def measured_cover(
    plan: "ProfilePlan", corpus: Engine, tokens: pa.LargeStringArray, secret: Secret
) -> dict[str, Cover]:
    """Return the noisy sums of users' shares of rows with a released value and without, by column."""
    names = [each.name for each in plan.mechanism.keys.columns]
    noise = CellNoise(plan.cover_sigma, UNIT, CELL, secret, "noise/cover")
    sums = corpus.row_shares(tokens, len(names), UNIT).measured(noise, 2 * len(names))
    pairs = (sums * (CELL / UNIT)).reshape(-1, 2).tolist()
    # Rounding to cells is about uniform.
    error = float(np.hypot(plan.cover_sigma, CELL / UNIT / np.sqrt(12)))
    return {name: Cover(covered, other, error) for name, (covered, other) in zip(names, pairs, strict=True)}
