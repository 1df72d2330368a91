"""Kernels that cut one sequence per user, count its grams and contexts, and draw from the probabilities that result.

Symbols are 0 to end - 1, and `end` behind each sequence. `nodes` holds, for each position, the node whose gram starts
there, or -1. Sequences lie one behind the other: as no node's gram holds `end`, a gram never runs into the next one.

A step is a position of a symbol or of an end mark; its context of length d is the d symbols before it. The positions
before the first symbol of a sequence are written `end` too.
"""

from typing import Any

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Bools, Floats, Int32s, Int64s, Uint64s
from voxpop.kernels.numbering import count_pairs, slot_of, slots_for
from voxpop.kernels.uniform import uniform

NOBODY = 1e-12
FIT_ROUNDS = 6


@jit
def count_documents(tokens: Int32s, user_start: Int64s, names: Int32s, documents: Int64s) -> None:
    """Count each user's documents that hold at least one symbol.

    Args:
        tokens: int32, -1 after each document.
        user_start: int64 (users + 1).
        names: int32 by token, its symbol, or -1.
        documents: int64 (users), written.
    """
    for user in range(documents.size):
        count = 0
        held = False
        for position in range(user_start[user], user_start[user + 1]):
            token = tokens[position]
            if token < 0:
                # -1 ends a document; it counts where a symbol was seen since the last one.
                count += held
                held = False
            elif names[token] >= 0:
                held = True
        documents[user] = count + held


@jit
def cut_sequences(
    tokens: Int32s, user_start: Int64s, names: Int32s, chosen: Int64s, most: int, end: int, symbols: Int32s
) -> int:
    """Write the first `most` symbols of each user's one sequence, and `end` behind them.

    Args:
        tokens: int32, -1 after each document.
        user_start: int64 (users + 1).
        names: int32 by token, its symbol, or -1; tokens without one are left out first.
        chosen: int64 (users), which of the documents that hold a symbol is the sequence; -1 joins them all.
        most: most symbols of one user.
        end: the end mark.
        symbols: int32, written; room for (most + 1) times the users, or for all tokens and users.

    Returns:
        The number of symbols written; users without symbols leave nothing.
    """
    size = 0
    for user in range(chosen.size):
        document = 0
        held = False
        taken = 0
        for position in range(user_start[user], user_start[user + 1]):
            token = tokens[position]
            if token < 0:
                document += held
                held = False
                # Behind the chosen document nothing is read.
                if chosen[user] >= 0 and document > chosen[user]:
                    break
            elif names[token] >= 0:
                held = True
                if chosen[user] < 0 or document == chosen[user]:
                    symbols[size] = names[token]
                    size += 1
                    taken += 1
                    # Cut to the first `most` symbols, so that one user changes at most `most` counts on each level.
                    if taken == most:
                        break
        if taken:
            symbols[size] = end
            size += 1
    return size


@jit
def count_children(symbols: Int32s, nodes: Int32s, depth: int, width: int) -> tuple[Int64s, Int64s]:
    """Count (node, next symbol) over all positions with a node, and number the pairs by first appearance.

    Args:
        symbols: int32.
        nodes: int32, the node whose gram starts at each position, or -1; overwritten with the number of the pair.
        depth: length of the nodes' grams.
        width: number of symbols and the end mark.

    Returns:
        keys (node * width + symbol) and counts, by pair.
    """
    # `nodes` is also the output: the number of the pair replaces the node.
    return count_pairs(symbols, nodes, depth, width, nodes)


@jit
def enter_children(nodes: Int32s, child: Int32s) -> None:
    """Replace the number of each pair by its node, or -1 where it has none."""
    for position in range(nodes.size):
        if nodes[position] >= 0:
            nodes[position] = child[nodes[position]]


@jit
def open_steps(symbols: Int32s, end: int, most: int, nodes: Int32s) -> None:
    """Put every step under the root, node 0, but no end mark behind `most` symbols: so a sequence has `most` at most.

    Args:
        symbols: int32, each sequence with its end mark.
        end: the end mark.
        most: most symbols of a sequence.
        nodes: int32 by position, written.
    """
    length = 0
    for position in range(symbols.size):
        if symbols[position] == end:
            # A sequence of `most` symbols has no step for its end: a user has at most `most` steps, the bound for which
            # the noise is scaled (docs/privacy/sequences.md, "Contexts").
            nodes[position] = 0 if length < most else -1
            length = 0
        else:
            nodes[position] = 0
            length += 1


@jit
def count_following(symbols: Int32s, nodes: Int32s, width: int) -> tuple[Int64s, Int64s]:
    """Count (node, symbol) over all steps with a node.

    Args:
        symbols: int32.
        nodes: int32 by position, or -1.
        width: number of symbols and the end mark.

    Returns:
        keys (node * width + symbol), by first appearance, and counts.
    """
    return count_pairs(symbols, nodes, 0, width, np.empty(0, np.int32))


@jit
def lengthen_contexts(
    symbols: Int32s, nodes: Int32s, depth: int, width: int, keys: Int64s, longer: Int32s, others: Int32s
) -> None:
    """Move each step to the node of its context with one symbol more before it.

    Args:
        symbols: int32.
        nodes: int32 by position, of contexts of this depth, or -1; overwritten.
        depth: length of those contexts.
        width: number of symbols and the end mark.
        keys: node * width + the symbol before, distinct.
        longer: int32 by key, the node that they lead to.
        others: int32 by node, where a step goes whose symbol before has no key; -1 for nowhere.
    """
    size = 16
    # A power of two, at most half full.
    while size < 2 * keys.size:
        size *= 2
    slots = slots_for(keys, keys.size, size)
    for position in range(nodes.size):
        node = nodes[position]
        if node < 0:
            continue
        # The symbol right before a context of length `depth`. Another sequence's end mark there means: nothing before.
        place = position - 1 - depth
        before = symbols[place] if place >= 0 else width - 1
        slot = slot_of(np.int64(node) * width + before, keys, slots)
        nodes[position] = longer[slots[slot]] if slots[slot] >= 0 else others[node]


@jit
def _node_of(history: Int32s, first: int, stop: int, begun: bool, width: int, child: Int32s, others: Int32s) -> Any:
    """Return the node of the longest context that `history[first:stop]` ends in; `begun` if it is a whole beginning."""
    node = 0
    place = stop
    while True:
        if place > first:
            place -= 1
            before = history[place]
        elif begun:
            before = width - 1
        else:
            return node
        longer = child[node * width + before]
        # Without a separate node: the node "others" counts it, or else the context itself.
        if longer < 0:
            return others[node] if others[node] >= 0 else node
        node = longer
        # The beginning is reached; nothing lies before it.
        if before == width - 1:
            return node


@jit
def nodes_of(rows: Int32s, lengths: Int64s, begun: Bools, width: int, tree: tuple[Int32s, Int32s]) -> Int32s:
    """Return the node of each history.

    Args:
        rows: int32 (histories, most), symbols, the latest last, counted from the left.
        lengths: int64 by history.
        begun: by history, whether it is all that a sequence has so far.
        width: number of symbols and the end mark.
        tree: child (int32 by node * width + symbol before, -1 for none) and others (int32 by node).

    Returns:
        int32 by history.
    """
    child, others = tree
    found = np.empty(lengths.size, np.int32)
    for row in range(lengths.size):
        found[row] = _node_of(rows[row], 0, lengths[row], begun[row], width, child, others)
    return found


@jit
def _next_symbol(
    state: Uint64s,
    history: Int32s,
    rows: Int64s,
    length: int,
    stay: float,
    sums: Floats,
    width: int,
    copies: tuple[float, float],
) -> int:
    """Return the next symbol: a copy from an earlier place of the same context, or one drawn from its chances.

    The latest place is taken with probability `repeats`, else each of the earlier places with probability 1 / (novelty
    + places), where the latest one is left out after the empty context. If the context there is another one, a symbol
    is drawn.
    """
    novelty, repeats = copies
    row, share = rows[length], (uniform(state) - repeats) / (1.0 - repeats)
    # Row 0 is that of the empty context.
    places = length - (row == 0)
    place = int(share * (novelty + places))
    if share < 0.0:
        place, places = length - 1, length
    if 0 <= place < places and rows[place] == row:
        return int(history[place])
    wanted = uniform(state) * stay
    low, high = 0, width - 2
    while low < high:
        middle = (low + high) // 2
        # Inversion by bisection: the first symbol whose running sum exceeds a uniform number.
        if sums[row + middle] > wanted:
            high = middle
        else:
            low = middle + 1
    return low


@jit
def fit_ends(
    seeds: Uint64s,
    width: int,
    sums: Floats,
    tree: tuple[Int32s, Int32s],
    copies: tuple[float, float],
    wanted: Floats,
    factors: Floats,
) -> Floats:
    """Fit the ends of sequences to wanted lengths, and return the share of sequences of each length.

    No sequence ends in the simulation: its weight is the probability that it goes on. So the shares have the noise of
    the contexts only.

    Args:
        seeds: uint64, one per sequence; overwritten.
        width: number of symbols and the end mark.
        sums: float64 (nodes * width), as in `draw_contexts`.
        tree: child and others, as in `nodes_of`.
        copies: as in `draw_contexts`.
        wanted: float64 by length below the maximum, the share that ends of those who get there; negative for any.
        factors: float64 by length below the maximum, of the odds of an end; written where a share is wanted.

    Returns:
        float64 (maximum length + 1).
    """
    child, others = tree
    most = factors.size
    shares = np.zeros(most + 1)
    history, rows = np.empty((seeds.size, most), np.int32), np.empty((seeds.size, most), np.int64)
    weights, stays = np.ones(seeds.size), np.empty(seeds.size)
    for length in range(most):
        total = weights.sum()
        if total < NOBODY * seeds.size:
            break
        for number in range(seeds.size):
            row = np.int64(_node_of(history[number], 0, length, True, width, child, others)) * width
            rows[number, length], stays[number] = row, sums[row + width - 2]
        rounds = FIT_ROUNDS if wanted[length] >= 0.0 else 1
        for turn in range(rounds):
            odds = (1.0 - stays) * factors[length]
            shares[length] = (weights * odds / np.maximum(stays + odds, NOBODY)).sum()
            if turn < rounds - 1:
                goal = min(wanted[length], 1.0 - NOBODY)
                share = min(max(shares[length] / total, NOBODY), 1.0 - NOBODY)
                # Newton's method would overshoot; a factor by the ratio of odds comes near in a few rounds.
                factors[length] *= goal / (1.0 - goal) * (1.0 - share) / share
        weights *= stays / np.maximum(stays + odds, NOBODY)
        for number in range(seeds.size):
            mine = seeds[number : number + 1], history[number], rows[number]
            history[number, length] = _next_symbol(*mine, length, stays[number], sums, width, copies)
    shares[most] = weights.sum()
    return shares / seeds.size


@jit
def draw_contexts(
    seeds: Uint64s,
    width: int,
    sums: Floats,
    tree: tuple[Int32s, Int32s],
    copies: tuple[float, float],
    factors: Floats,
    symbols_out: Int32s,
    sizes: Int64s,
) -> int:
    """Draw whole sequences, without end marks.

    Args:
        seeds: uint64, one per sequence; overwritten.
        width: number of symbols and the end mark.
        sums: float64 (nodes * width), running sums of the chances at each node; each node's last is 1.
        tree: child and others, as in `nodes_of`.
        copies: novelty, the weight of the chances against one earlier symbol of the same sequence; and the probability
            of a copy of the latest symbol before that, below 1.
        factors: float64 by length below the maximum, of the odds of an end there.
        symbols_out: int32, written; room for `most` symbols per seed.
        sizes: int64 by seed, written.

    Returns:
        The number of symbols written.
    """
    child, others = tree
    rows = np.empty(factors.size, np.int64)
    size = 0
    for number in range(seeds.size):
        state = seeds[number : number + 1]
        begin = size
        while size - begin < factors.size:
            # The context of the symbols drawn so far in this sequence; `begin` is where it starts.
            row = np.int64(_node_of(symbols_out, begin, size, True, width, child, others)) * width
            length, stay = size - begin, sums[row + width - 2]
            if uniform(state) * (stay + (1.0 - stay) * factors[length]) >= stay:
                break
            rows[length] = row
            symbols_out[size] = _next_symbol(state, symbols_out[begin:], rows, length, stay, sums, width, copies)
            size += 1
        sizes[number] = size - begin
    return size


@jit
def count_variety(symbols: Int32s, starts: Int64s, stops: Int64s, width: int, most: int) -> Int64s:
    """Count the distinct symbols, and those that equal the symbol before, among the first symbols of sequences.

    No symbol counts in both, for one that equals the symbol before it has occurred in its sequence: a sequence changes
    both numbers together by `most` at most.

    Args:
        symbols: int32.
        starts: int64 by sequence, the place of its first symbol.
        stops: int64 by sequence, the place behind its last symbol.
        width: number of symbols.
        most: number of first symbols of a sequence that are counted.

    Returns:
        int64 (2), both numbers, each added up over the sequences.
    """
    counts = np.zeros(2, np.int64)
    # int64 by symbol: the last sequence that had it.
    last = np.full(width, -1, np.int64)
    for sequence in range(starts.size):
        for position in range(starts[sequence], min(starts[sequence] + most, stops[sequence])):
            symbol = symbols[position]
            counts[0] += last[symbol] != sequence
            counts[1] += position > starts[sequence] and symbol == symbols[position - 1]
            last[symbol] = sequence
    return counts


@jit
def count_reaching(symbols: Int32s, starts: Int64s, steps: Int32s, within: int) -> Int64s:
    """Count the sessions that get as far as each step of a funnel.

    Args:
        symbols: int32, one session behind the other.
        starts: int64 (sessions + 1).
        steps: int32, symbols in the order wanted.
        within: most symbols from one step to the next.

    Returns:
        int64 by step: sessions in which there are places, one for each step up to this one, in order and each at most
        `within` behind the one before.
    """
    counts = np.zeros(steps.size, np.int64)
    # int64 by step: the latest place at which a match up to it ends, -1 for none.
    last = np.empty(steps.size, np.int64)
    for session in range(starts.size - 1):
        last[:] = -1
        reached = 0
        for position in range(starts[session], starts[session + 1]):
            # From the last step on, so that one place does not stand for two steps; the latest place is the best one.
            for step in range(min(reached, steps.size - 1), -1, -1):
                if symbols[position] != steps[step]:
                    continue
                if step == 0 or (last[step - 1] >= 0 and position - last[step - 1] <= within):
                    last[step] = position
                    reached = max(reached, step + 1)
        # A user who reaches a step has reached all earlier ones.
        for step in range(reached):
            counts[step] += 1
    return counts
