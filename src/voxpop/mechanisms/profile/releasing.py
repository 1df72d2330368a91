"""Release profiles (rounds over all typed keys, then counts and cover of the released keys) and keys with counts."""

from collections.abc import Sequence
from functools import partial
from itertools import permutations
from math import hypot, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.contract import Engine, check_engine
from voxpop.engine.data import Corpus
from voxpop.errors import InputError, InternalError
from voxpop.files.progress import tell
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.mechanisms.counts.mechanism import CountsMechanism
from voxpop.mechanisms.profile.constants import (
    CELL,
    COVER_UNIT,
    MORE_LIMITS,
    MOST_POOLINGS,
    SIZE_EDGES,
    SIZE_SURE,
    SIZES_HELD,
    SPURIOUS,
    SPURIOUS_EACH,
    UNEVEN,
)
from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds
from voxpop.mechanisms.rounds.known import plan_known
from voxpop.mechanisms.rounds.menu import Menu, on_list, released_in_rounds
from voxpop.privacy.gate.rounds import AdaptiveGate, PublicParts
from voxpop.privacy.parameters import KeyParts
from voxpop.privacy.planned import GateCall, run_passes, with_record
from voxpop.reading.arrow import array_of, int64_array, numbers_of, text_buffers
from voxpop.reading.keys import joined_texts, split_texts
from voxpop.release.profile import KNOWN_MARKS, ColumnCover, Profile
from voxpop.release.release import Release

if TYPE_CHECKING:
    from voxpop.mechanisms.profile.plan import KeysPlan, ProfilePlan
    from voxpop.privacy.gate.counts import KeysGate
    from voxpop.reading.typed_keys import TypedKeys
    from voxpop.release.counts import Counts

NO_TOKENS = pa.nulls(0, pa.large_string())


class Stages(NamedTuple):
    """The private data of a profile.

    Attributes:
        every: The users with all their typed keys.
        single: The same users with only their single keys.
    """

    every: Engine
    single: Engine


def stages(plan: "ProfilePlan", data: Corpus) -> Stages:
    """Return the data of both stages. Raise an error if it does not fit the plan or the memory limit."""
    corpus, keys = keyed_engine(plan, data), plan.mechanism.keys
    if plan.mechanism.known_columns is not None:
        plan.mechanism.known_columns.check()
    return Stages(corpus, corpus.only(keys, None))


def keyed_engine(plan: "ProfilePlan | KeysPlan", data: Corpus) -> Engine:
    """Return the private data. Raise an error if the data does not fit the plan."""
    corpus, keys = check_engine(data), plan.mechanism.keys
    if not corpus.token_source.startswith(keys.token_source):
        raise InputError(
            "the data must be read for this profile, with its columns and combinations. Read it with "
            "`profiling.read(table, user=...)`."
        )
    return corpus


class _Profiled(NamedTuple):
    """The public results of a profile: its tokens, rounds, number of undecided joint candidates, counts and cover."""

    tokens: pa.LargeStringArray = NO_TOKENS
    rounds: AdaptiveRounds | None = None
    candidates: int = 0
    counts: "Counts | None" = None
    cells: Int64s | None = None


def release_profile(plan: "ProfilePlan", data: Stages, seed: int | None) -> Profile:
    """Release the keys, count them, and measure their cover; see `voxpop.profile`."""
    (corpus, single), keys = data, plan.mechanism.keys
    reading = corpus.token_source.removeprefix(keys.token_source)
    gate, guarantee = plan.begin(seed)
    lists = plan.mechanism.known_columns
    listed = None if lists is None else PublicParts(lists.parts(keys, reading), text_buffers)

    def schedule(state: _Profiled) -> "GateCall[AdaptiveGate, _Profiled] | None":
        tokens, rounds = state.tokens, state.rounds
        if rounds is None:
            return GateCall(
                lambda gate: released_in_rounds(plan.passes[0], gate, single, listed),
                lambda found: _Profiled(found[0], found[1], _joint_candidates(keys, found[0])),
            )
        if state.candidates:
            return GateCall(
                partial(_with_joint, plan, corpus, tokens, rounds.limit, state.candidates),
                lambda every: state._replace(tokens=every, candidates=0),
            )
        if plan.counting and state.counts is None:
            return GateCall(
                partial(_counts_for, plan, corpus, seed, tokens), lambda found: state._replace(counts=found)
            )
        if plan.counting and state.cells is None:
            given = (corpus, tokens, len(keys.columns), COVER_UNIT, CELL)
            return GateCall(lambda gate: gate.cover(*given), lambda cells: state._replace(cells=cells))
        return None

    tokens, rounds, _, counts, cells = run_passes(_Profiled(), schedule, gate, None)
    sets, items = keys.split(tokens)
    columns = {"set": array_of(sets), "item": items}
    if listed is not None:
        columns[KNOWN_MARKS] = pa.array(on_list(tokens, listed))
    if counts is not None:
        columns["users"] = int64_array(counts.users)
    names = [each.name for each in keys.columns]
    cover = {} if cells is None else covers(names, cells, plan.cover_error)
    # It is public that a column without released values covers no rows. Noise on its cover would look like a share.
    for number, name in enumerate(cover):
        if number not in sets:
            cover[name] = cover[name]._replace(covered=0.0)
    done = with_record(plan, gate, passes=(plan.passes[0], rounds))
    return Profile(keys, pa.table(columns), cover, done, guarantee, reading, None if counts is None else counts.error)


def _with_joint(
    plan: "ProfilePlan", corpus: Engine, single: pa.LargeStringArray, limit: int, number: int, gate: AdaptiveGate
) -> pa.LargeStringArray:
    """Return released single tokens and the joint tokens that rounds over all their combinations release."""
    keys, rounds = plan.mechanism.keys, plan_known(plan.joining, limit, number, min(SPURIOUS, SPURIOUS_EACH * number))
    joint = gate.known(corpus.only(keys, single), rounds.stated(), keys.candidates(single), text_buffers)
    every = pa.concat_arrays([single, joint])
    return every.take(pc.array_sort_indices(every.cast(pa.large_binary())))


def _joint_candidates(keys: "TypedKeys", single: pa.LargeStringArray) -> int:
    """Return the number of possible joint tokens, without the combinations of columns that have too many values."""
    sizes = keys.sizes(single)
    if left_out := [" x ".join(names) for names in keys.joint if names not in sizes]:
        tell(f"these combinations have too many values and were skipped: {', '.join(left_out[:20])}.", None)
    return sum(sizes.values())


def _counts_for(
    plan: "ProfilePlan | KeysPlan", corpus: Engine, seed: int | None, tokens: pa.LargeStringArray, gate: AdaptiveGate
) -> "Counts":
    """Return the counts of released tokens. The gate compares the cost of the counts with their part of the cap."""
    release = Release.from_items(tokens, plan, plan.guarantee)
    counts = CountsMechanism().plan_within(plan.counting, plan.budget, release)
    gate.counts(counts.certificate)
    return counts.release(Corpus(corpus), seed=seed)


def covers(names: Sequence[str], cells: Any, error: float | None) -> dict[str, ColumnCover]:
    """Return the noisy sums of users' shares of rows with and without a released key, by name."""
    pairs = (cells * (CELL / COVER_UNIT)).reshape(-1, 2).tolist()
    return {name: ColumnCover(one, other, error or 0.0) for name, (one, other) in zip(names, pairs, strict=True)}


class _Keyed(NamedTuple):
    """The public results of keys with counts: entry, keys, users, limit or rounds, error, and sums of shares."""

    place: int | None = None
    tokens: pa.LargeStringArray = NO_TOKENS
    users: Int64s | None = None
    limit: int | None = None
    rounds: AdaptiveRounds | None = None
    error: float | None = None
    cells: Any = None


def release_keys(plan: "KeysPlan", corpus: Engine, seed: int | None) -> Profile:
    """Release keys with their counts, and measure the other rows; see `voxpop.profile`."""
    keys = plan.mechanism.keys
    gate, guarantee = plan.begin(seed)

    def schedule(state: _Keyed) -> GateCall[Any, _Keyed] | None:
        place, tokens = state.place, state.tokens
        if place is None:
            return GateCall(partial(_chosen, plan, corpus), _Keyed)
        if state.users is None:
            if place < len(plan.menu):
                return GateCall(lambda gate: gate.numbers(corpus), lambda found: _Keyed(place, *found))
            parts = plan.parts if place == plan.place_of_parts else None
            return GateCall(
                partial(_found_in_parts, parts, corpus) if parts else partial(_found_in_rounds, plan, corpus, seed),
                lambda found: _Keyed(place, *found),
            )
        if plan.mechanism.other_rows and state.cells is None:
            return GateCall(partial(_shares, plan, corpus, tokens), lambda cells: state._replace(cells=cells))
        return None

    state = run_passes(_Keyed(0 if plan.mechanism.repeated else None), schedule, gate, None)
    if state.users is None:
        raise InternalError("the passes ended before the keys")
    sets, items = keys.split(state.tokens)
    names = [" x ".join(columns) for columns in keys.sets]
    cover = {} if state.cells is None else covers(names, state.cells, plan.cover_error)
    ran = (*plan.passes, state.rounds) if state.rounds and isinstance(plan.passes[0], Menu) else plan.passes
    done = with_record(plan, gate, passes=ran, chosen=state.place, limit_of_more=state.limit)
    # The adjusted counts depend only on released numbers.
    users = consistent_counts(keys.sets, sets, items, state.users)
    table = pa.table({"set": array_of(sets), "item": items, "users": int64_array(users)})
    source = corpus.token_source.removeprefix(keys.token_source)
    return Profile(keys, table, cover, done, guarantee, source, done.error or state.error)


def _chosen(plan: "KeysPlan", corpus: Engine, gate: "KeysGate") -> int:
    """Choose an entry of the menu through the gate, and return its index."""
    place = plan.entry_for(gate.classes(corpus)) if plan.choosing else 0
    gate.choose(place)
    return place


def _found_in_parts(parts: KeyParts, corpus: Engine, gate: "KeysGate") -> tuple[pa.LargeStringArray, Int64s, int]:
    """Return the keys released from users with one or two keys, their numbers of users, and the chosen limit."""
    tokens, users = gate.few(corpus)
    limit = limit_of_more(parts, gate.sizes(corpus, tokens, SIZE_EDGES), len(tokens))
    return tokens, np.maximum(users + gate.more(limit), 1), limit


def _found_in_rounds(
    plan: "KeysPlan", corpus: Engine, seed: int | None, gate: "AdaptiveGate | KeysGate"
) -> tuple[pa.LargeStringArray, Int64s, None, AdaptiveRounds, float | None]:
    """Return the keys released in rounds, the number of users of each key, the rounds, and the error of the numbers."""
    inner = gate if isinstance(gate, AdaptiveGate) else gate.rounds()
    tokens, rounds = released_in_rounds(plan.passes[0], inner, corpus)
    counts = _counts_for(plan, corpus, seed, tokens, inner)
    # A released key has at least one user.
    return tokens, np.maximum(counts.users, 1), None, rounds, counts.error


def _shares(plan: "KeysPlan", corpus: Engine, tokens: pa.LargeStringArray, gate: Any) -> Any:
    """Return the noisy sums of users' shares of rows with and without a released key, by set, in cells."""
    sets = len(plan.mechanism.keys.sets)
    if plan.cover_sigma:
        return gate.cover(corpus, tokens, sets, COVER_UNIT, CELL)
    return np.round(gate.rest(corpus, tokens, sets, COVER_UNIT) / CELL)


def limit_of_more(parts: KeyParts, sizes: Int64s, keys: int) -> int:
    """Return the maximum number of released keys that are counted per user with three or more keys.

    The function chooses the limit with the smallest error, which is estimated from noisy numbers. The estimate assumes
    that the bias of a key's count is `UNEVEN` times the mean bias of all keys.

    Args:
        parts: The noise of the entry that counts users in parts.
        sizes: The noisy number of users in each class. The number of released keys of a user determines the class.
        keys: The number of released keys.
    """
    scale = 1.0 / float(parts.sizing)
    pairs = zip(sizes.tolist(), SIZE_SURE, strict=True)
    users = [float(each) if each >= sure * scale else 0.0 for each, sure in pairs]

    def error(limit: int) -> float:
        lost = sum(n * max(0.0, held - limit) for n, held in zip(users, SIZES_HELD, strict=True))
        return hypot(sqrt(2.0) / float(parts.rate_of_more(limit)), UNEVEN * lost / max(1, keys))

    return min(MORE_LIMITS, key=error)


def consistent_counts(
    names: Sequence[tuple[str, ...]], sets: Int32s, items: pa.LargeStringArray, users: Int64s
) -> Int64s:
    """Return noisy counts in which no margin has fewer users than one of its released cells.

    A margin and the cells that exceed it are replaced by their mean, which is the smallest change if all errors are
    equal. If a margin is still below a cell afterwards, the margin is raised. Raising can be necessary because a cell
    can have several margins.

    Args:
        names: The columns of each set.
        sets: int32, the set of each key.
        items: The keys, spelled as in a release.
        users: int64, the noisy number of users of each key.
    """
    pairs = [_cells_in_margins(names, sets, items, *each) for each in permutations(range(len(names)), 2)]
    cells, margins = (np.concatenate([np.empty(0, np.int64), *(pair[place] for pair in pairs)]) for place in (0, 1))
    order = np.argsort(margins, kind="stable")
    cells, margins, values = cells[order], margins[order], users.astype(np.float64)
    for _ in range(MOST_POOLINGS):
        low = np.unique(margins[values[cells] > values[margins] + 0.5])
        spans = np.searchsorted(margins, [low, low + 1]).T
        for margin, (first, stop) in zip(low.tolist(), spans.tolist(), strict=True):
            inside = cells[first:stop]
            above = inside[np.argsort(-values[inside], kind="stable")]
            total, number = values[margin], 1
            while number <= above.size and values[above[number - 1]] > total / number:
                total, number = total + values[above[number - 1]], number + 1
            values[[margin, *above[: number - 1].tolist()]] = total / number
        if not low.size:
            break
    found: Int64s = np.rint(values).astype(np.int64)
    # Sets with many columns are processed first, so that a raised margin also raises the margins of smaller sets.
    widths = np.array([len(each) for each in names])[sets[margins]] if margins.size else margins
    for width in sorted(set(widths.tolist()), reverse=True):
        mine = widths == width
        np.maximum.at(found, margins[mine], found[cells[mine]])
    return found


def _cells_in_margins(
    names: Sequence[tuple[str, ...]], sets: Int32s, items: pa.LargeStringArray, cell: int, margin: int
) -> tuple[Int64s, Int64s]:
    """Return the positions of the cells of a set, and of their margins in another set with some of its columns."""
    nothing = np.empty(0, np.int64)
    if not set(names[margin]) < set(names[cell]):
        return nothing, nothing
    mine, others = (np.flatnonzero(sets == number) for number in (cell, margin))
    parts = dict(zip(names[cell], split_texts(items.take(int64_array(mine)), len(names[cell])), strict=True))
    wanted = [parts[name] for name in names[margin]]
    keys = wanted[0] if len(wanted) == 1 else joined_texts(wanted)
    place = pc.index_in(keys.cast(pa.large_string()), value_set=items.take(int64_array(others)))
    found = numbers_of(place, missing=-1).astype(np.int64)
    return mine[found >= 0], others[found[found >= 0]]
