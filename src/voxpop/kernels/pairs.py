"""Kernels that number the grams of one length, given the numbers of the grams of the previous length.

A gram of length k+1 is a pair of the gram of length k with the same start and a partner with the same end. Ids are
written in place, so only the list of distinct pairs grows.
"""

from typing import Any

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Bytes, Int32s, Int64s, Uint32s
from voxpop.kernels.proved import proved

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(64)
_LOW_HALF = 2**32 - 1
FIRST_SLOTS_BITS = 12
PAIRS_AT_ONCE = 64
"""The number of names that are looked up together."""
_PairTable = tuple[Int64s, Uint32s]
"""The names in order of their numbers, and the slots. The number of slots is a power of two and at least twice the
number of names. A slot contains the number of a name plus 1, or 0 if it is empty.
"""


@jit
def _first_slot(name: Any, shift: np.uint64) -> Any:
    """Return the slot at which the search for a name begins."""
    mixed = np.uint64(name) * _SPREAD
    # Both halves of a name must influence the slot. Therefore upper bits are shifted down, and a second product spreads
    # them.
    mixed ^= mixed >> np.uint64(29)
    return np.int64((mixed * _SPREAD) >> shift)


@jit
def _number_slot(name: Any, first: Any, names: Int64s, table: Uint32s) -> Any:
    """Return the slot of a name, or the empty slot for it. A slot contains the number of a name plus 1."""
    slot = first
    while table[slot] != 0 and names[np.int64(table[slot]) - 1] != name:
        slot = (slot + 1) & (table.size - 1)
    return slot


@jit
def _shift_of(table: Uint32s) -> np.uint64:
    """Return the number of bits by which a hash is shifted to give a slot."""
    bits = 0
    while 1 << bits < table.size:
        bits += 1
    return _HIGH - np.uint64(bits)


@jit
def _numbers_of(names: Int64s, count: int, size: int) -> Uint32s:
    """Return a table of `size` slots, a power of two, that contains the numbers of the first `count` names."""
    table = np.zeros(size, np.uint32)
    shift = _shift_of(table)
    for number in range(count):
        table[_number_slot(names[number], _first_slot(names[number], shift), names, table)] = np.uint32(number + 1)
    return table


@jit
def _slots_for(count: int) -> int:
    """Return the number of slots for `count` names, at least twice the number of names."""
    size = 1 << FIRST_SLOTS_BITS
    while size < 2 * count:
        size *= 2
    return size


@jit
def _number_of(name: Any, table: _PairTable, shift: np.uint64) -> Any:
    """Return the number of a name, or -1 for a name that is not in the table."""
    names, slots = table
    return np.int64(slots[_number_slot(name, _first_slot(name, shift), names, slots)]) - 1


@jit
def table_of(names: Int64s) -> _PairTable:
    """Return a table that maps distinct nonnegative names to their positions."""
    return names, _numbers_of(names, names.size, _slots_for(names.size))


@jit
def number_more_pairs(
    ids: Int32s,
    partners: Int32s,
    offset: int,
    span: tuple[int, int, int],
    need: Int64s,
    estimates: Int64s,
    names: Int64s,
    count: int,
    table: Uint32s,
    most: int,
) -> tuple[Int64s, int, Uint32s]:
    """Continue the numbering of `number_pairs` after pairs of earlier ranges.

    Args:
        ids: See `number_pairs`.
        partners: See `number_pairs`.
        offset: See `number_pairs`.
        span: The first position, the end of the range, and the end of the range of partners.
        need: See `number_pairs`.
        estimates: See `number_pairs`.
        names: int64, with room for 2^k names. The first `count` names are valid.
        count: The number of valid names.
        table: uint32 (2^(k+1)), the hash table of the names. A slot has only 4 bytes, because there can be hundreds of
            millions of slots.
        most: The maximum number of names in the table.

    Returns:
        The names, their count (-1 if there are more than `most`), and the table.
    """
    position, end, stop = span
    shift = _shift_of(table)
    places, block = np.empty(PAIRS_AT_ONCE, np.int64), np.empty(PAIRS_AT_ONCE, np.int64)
    while position < end:
        position, held = _gather_pairs(ids, partners, offset, (position, end, stop), need, estimates, places, block)
        done, count = _number_block(ids, places, block, 0, held, names, count, table, shift)
        while done < held:
            if count >= most:
                return names, -1, table
            longer = np.empty(2 * names.size, np.int64)
            for number in range(count):  # numba takes seconds to compile a slice assignment
                longer[number] = names[number]
            names = longer
            # Free the old table before allocating the new one, because both together would set the peak memory of a
            # release.
            table = np.empty(0, np.uint32)
            table = _numbers_of(names, count, 2 * names.size)
            shift -= np.uint64(1)
            done, count = _number_block(ids, places, block, done, held, names, count, table, shift)
    return names, count, table


@jit
@proved("ngrams.md#proof")
def _is_candidate(left: Any, right: Any, need: Int64s, estimates: Int64s) -> bool:
    """Return whether a pair is a candidate.

    This function is the only membership test (docs/privacy/ngrams.md, "One predicate").

    Proof: "The test at each position, the count and the list all compare with that array"
    """
    # The count and the list of candidates compare the same integers.
    return bool(estimates[right] >= need[left])


@jit
def _gather_pairs(
    ids: Int32s,
    partners: Int32s,
    offset: int,
    span: tuple[int, int, int],
    need: Int64s,
    estimates: Int64s,
    places: Int64s,
    block: Int64s,
) -> Any:
    """Write the positions and names of the next pairs, and -1 at positions where no pair begins.

    Returns:
        The first position that was not read, and the number of pairs written.
    """
    position, end, stop = span
    held = 0
    while position < end and held < block.size:
        left = ids[position]
        if left >= 0:
            # Writing in place is possible because position p + offset is read before it is written (offset >= 1).
            right = partners[position + offset] if position + offset < stop else np.int32(-1)
            if right < 0 or not _is_candidate(left, right, need, estimates):
                ids[position] = -1
            else:
                # The name is left * 2^32 + partner, which is below 2^63 because ranks are below 2^31.
                places[held], block[held] = position, (np.int64(left) << 32) | np.int64(right)
                held += 1
        position += 1
    return position, held


@jit
def _number_block(
    ids: Int32s,
    places: Int64s,
    block: Int64s,
    first: int,
    held: int,
    names: Int64s,
    count: int,
    table: Uint32s,
    shift: np.uint64,
) -> Any:
    """Write the number of each of a block's names to its position, while there is room for new names.

    In a large table, each lookup reads memory twice, first a number and then its name. Therefore the kernel first reads
    the first slots of all names in the block, and then the names of the numbers in these slots. No lookup depends on
    the result of an earlier lookup, not even through a branch, so the processor runs several lookups at the same time.

    Returns:
        The position of the first name in the block without room (`held` if all names have room), and the number of
        names.
    """
    slots, seen, met = (
        np.empty(PAIRS_AT_ONCE, np.int64),
        np.empty(PAIRS_AT_ONCE, np.int64),
        np.empty(PAIRS_AT_ONCE, np.int64),
    )
    for place in range(first, held):
        slots[place] = _first_slot(block[place], shift)
        seen[place] = table[slots[place]]
    for place in range(first, held):
        # For an empty slot, this reads an arbitrary name, which is ignored.
        met[place] = names[max(seen[place] - 1, 0)]
    for place in range(first, held):
        name, number = block[place], seen[place] - 1
        if number < 0 or met[place] != name:
            slot = _number_slot(name, slots[place], names, table)
            number = np.int64(table[slot]) - 1
            if number < 0:
                if count == names.size:
                    return place, count
                number = count
                names[count] = name
                count += 1
                table[slot] = np.uint32(count)
        ids[places[place]] = np.int32(number)
    return held, count


@jit
def number_pairs(
    ids: Int32s, partners: Int32s, offset: int, begin: int, end: int, need: Int64s, estimates: Int64s, most: int
) -> tuple[Int64s, int]:
    """Replace the gram at each position with the number of the pair (gram, partner) that starts there, or -1.

    The pair of `a` and `b` is a candidate if and only if `estimates[b] >= need[a]`. Pairs are numbered in order of
    first appearance within the range.

    Args:
        ids: int32, the gram that starts at each position, or -1. This array is overwritten from `begin` to `end`.
        partners: int32, the partner that starts at each position. This array may be `ids` itself.
        offset: The distance from a gram to its partner, at least 1. The partner of position p starts at p + offset.
        begin: The first position of the range, which is the first position of a user.
        end: The end of the range, which is the end of a user's positions.
        need: int64 by left gram, the smallest estimate that a partner must have.
        estimates: int64 by partner, the estimate of the partner.
        most: The maximum number of names, a power of two and at most 2^31, so that 32-bit numbers distinguish them.

    Returns:
        int64, the names `a * 2^32 + b` of the pairs in order of their numbers; and the number of valid names, or -1 if
        there are more than `most`.
    """
    names = np.empty(1 << (FIRST_SLOTS_BITS - 1), np.int64)
    table = np.zeros(1 << FIRST_SLOTS_BITS, np.uint32)
    names, count, _ = number_more_pairs(
        ids, partners, offset, (begin, end, end), need, estimates, names, 0, table, most
    )
    return names, count


@jit
def merge_names(parts: Int64s, names: Int64s, count: int, renamed: Int32s) -> Int64s:
    """Number the names of another part, starting at `count`. Names that already have numbers keep them.

    Args:
        parts: int64, the distinct names of the part.
        names: int64, the distinct names so far. The first `count` names are valid.
        count: The number of valid names.
        renamed: int32 (parts), overwritten by the number of each name of the part.

    Returns:
        All names.
    """
    merged = np.empty(count + parts.size, np.int64)
    for number in range(count):
        merged[number] = names[number]
    table = _numbers_of(merged, count, _slots_for(merged.size))
    shift = _shift_of(table)
    # Existing names keep their numbers. New names get the next numbers, in order.
    for number in range(parts.size):
        slot = _number_slot(parts[number], _first_slot(parts[number], shift), merged, table)
        if table[slot] == 0:
            merged[count] = parts[number]
            count += 1
            table[slot] = np.uint32(count)
        renamed[number] = np.int32(np.int64(table[slot]) - 1)
    return merged[:count]


@jit
def find_names(wanted: Int64s, table: _PairTable) -> Int32s:
    """Return the number of each name, or -1 for a name that is not in the table."""
    shift = _shift_of(table[1])
    found = np.empty(wanted.size, np.int32)
    for place in range(wanted.size):
        found[place] = np.int32(_number_of(wanted[place], table, shift))
    return found


@jit
def mark_met(names: Int64s, table: _PairTable, met: Bytes) -> None:
    """Write 1 to `met` at the number of each name that is in the table.

    Nothing else is written, so parts may run in parallel.

    Args:
        names: int64, nonnegative names.
        table: The table from `table_of`.
        met: uint8 by number in the table; overwritten by 1 for the names that occur.
    """
    shift = _shift_of(table[1])
    for place in range(names.size):
        number = _number_of(names[place], table, shift)
        if number >= 0:
            met[number] = 1


@jit
def belongs(names: Int64s, need: Int64s, estimates: Int64s, further: _PairTable) -> Bytes:
    """Return 1 for each pair that is allowed as in `number_pairs` or is in the table `further`, and 0 otherwise.

    Args:
        names: int64, `left * 2^32 + partner`.
        need: int64 by left gram, the smallest estimate that a partner must have.
        estimates: int64 by partner, the estimate of the partner.
        further: The table of further pairs, from `table_of`.
    """
    shift = _shift_of(further[1])
    found = np.empty(names.size, np.uint8)
    for place in range(names.size):
        name = names[place]
        mine = _is_candidate(name >> 32, name & _LOW_HALF, need, estimates)
        found[place] = mine or _number_of(name, further, shift) >= 0
    return found


@jit
def rename_in_runs(ids: Int32s, user_start: Int64s, first: int, stop: int, renamed: Int32s, starts: Int64s) -> int:
    """Replace every id of some users with `renamed[id]`, in place, and close gaps.

    A run of positions without an id is reduced to its first position, or removed if it precedes a user's first id.
    Therefore ids that are adjacent in the result were adjacent before.

    Args:
        ids: int32 by position, overwritten from the start of the first of these users.
        user_start: int64 (users + 1), the first position of each user.
        first: The first of the users.
        stop: The end of the users (exclusive).
        renamed: int32 by id, the new id; negative for removed ids.
        starts: int64, overwritten by the new start of each user from `first` to `stop` (exclusive).

    Returns:
        The new end of the last of these users.
    """
    end = user_start[first]
    for user in range(first, stop):
        starts[user] = end
        held: Any = False
        for position in range(user_start[user], user_start[user + 1]):
            old = ids[position]
            new = renamed[old] if old >= 0 else np.int32(-1)
            # `end` never exceeds `position`, so overwritten values have already been read.
            ids[end] = new
            end += held or new >= 0
            held = new >= 0
    return int(end)


@jit
def move_down(ids: Int32s, begin: int, end: int, target: int) -> None:
    """Move the ids of a range to `target`, which is at or before the start of the range."""
    for position in range(begin, end):
        ids[target + position - begin] = ids[position]
