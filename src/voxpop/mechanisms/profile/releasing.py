"""Profiles: rounds over all typed keys, then counts and cover of the released keys."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.contract import Engine, check_engine
from voxpop.engine.data import Corpus
from voxpop.errors import InputError
from voxpop.files.progress import tell
from voxpop.mechanisms.profile.constants import CELL, COVER_UNIT, SPURIOUS, SPURIOUS_EACH
from voxpop.mechanisms.rounds.known import plan_known
from voxpop.mechanisms.rounds.menu import released_in_rounds
from voxpop.privacy.planned import with_record
from voxpop.reading.arrow import array_of, int64_array, text_buffers
from voxpop.release.profile import ColumnCover, Profile
from voxpop.release.registry import configuration
from voxpop.release.release import Release

if TYPE_CHECKING:
    from voxpop.mechanisms.profile.plan import ProfilePlan
    from voxpop.privacy.gate.rounds import AdaptiveGate


class Stages(NamedTuple):
    """The private side of a profile.

    Attributes:
        every: all typed keys.
        single: the same users with their single keys.
    """

    every: Engine
    single: Engine


def stages(plan: "ProfilePlan", data: Corpus) -> Stages:
    """Return the private side; raises here if the data do not fit the plan, or both stages do not fit into memory."""
    corpus, keys = check_engine(data), plan.mechanism.keys
    if not corpus.token_source.startswith(keys.token_source):
        raise InputError(
            "the data must be read for this profile, with its columns and combinations. Read it with "
            "`profiling.read(table, user=...)`."
        )
    return Stages(corpus, corpus.only(keys, None))


def release_profile(plan: "ProfilePlan", data: Stages, seed: int | None) -> Profile:
    """Release the keys, count them, and measure their cover; see `voxpop.profile`."""
    (corpus, single), keys = data, plan.mechanism.keys
    reading = corpus.token_source.removeprefix(keys.token_source)
    gate, guarantee = plan.begin(seed)
    found, rounds = released_in_rounds(plan.passes[0], gate, single)
    tokens = with_joint(plan, corpus, found, rounds.limit, gate)
    sets, items = keys.split(tokens)
    columns = {"set": array_of(sets), "item": items}
    error, cover = None, dict[str, ColumnCover]()
    if plan.counting:
        # The registry imports counts, because no mechanism imports another.
        release = Release.from_items(tokens, plan, guarantee)
        counts = configuration("counts")().plan_within(plan.counting, plan.budget, release)
        gate.counts(counts.certificate)
        tally = counts.release(corpus, seed=seed)
        columns["users"], error = int64_array(tally.users), tally.error
        cover = measured_cover(plan, corpus, tokens, gate)
        # A column without a released value covers nothing, which is public; its noise would look like a share.
        for number, name in enumerate(cover):
            if number not in sets:
                cover[name] = cover[name]._replace(covered=0.0)
    done = with_record(plan, gate, passes=(plan.passes[0], rounds))
    return Profile(keys, pa.table(columns), cover, done, guarantee, reading, error)


def with_joint(
    plan: "ProfilePlan", corpus: Engine, single: pa.LargeStringArray, limit: int, gate: "AdaptiveGate"
) -> pa.LargeStringArray:
    """Return released single tokens and the joint tokens of them that rounds over all combinations release.

    Args:
        plan: of the profile.
        corpus: of all typed keys.
        single: the released single tokens, so the candidates are public.
        limit: that ran for single tokens: a function of noisy numbers.
        gate: of the release.
    """
    keys = plan.mechanism.keys
    sizes = keys.sizes(single)
    if left_out := [" x ".join(names) for names in keys.joint if names not in sizes]:
        tell(f"these combinations have too many values and were left out: {', '.join(left_out[:20])}.", None)
    if not (number := sum(sizes.values())):
        return single
    rounds = plan_known(plan.joining, limit, number, min(SPURIOUS, SPURIOUS_EACH * number))
    joint = gate.known(corpus.only(keys, single), rounds.stated(), keys.candidates(single), text_buffers)
    every = pa.concat_arrays([single, joint])
    return every.take(pc.array_sort_indices(every.cast(pa.large_binary())))


def measured_cover(
    plan: "ProfilePlan", corpus: Engine, tokens: pa.LargeStringArray, gate: "AdaptiveGate"
) -> dict[str, ColumnCover]:
    """Return the noisy sums of users' shares of rows with a released value and without, by column."""
    names = [each.name for each in plan.mechanism.keys.columns]
    sums = gate.cover(corpus, tokens, len(names), COVER_UNIT, CELL)
    pairs = (sums * (CELL / COVER_UNIT)).reshape(-1, 2).tolist()
    # Rounding to cells is about uniform.
    error = float(np.hypot(plan.cover_sigma, CELL / COVER_UNIT / np.sqrt(12)))
    return {name: ColumnCover(covered, other, error) for name, (covered, other) in zip(names, pairs, strict=True)}
