"""Kernels that cut one sequence per user, count grams and contexts, and draw sequences from released probabilities.

Symbols are numbered from 0 to end - 1, and each sequence is followed by `end`. For each position, `nodes` contains the
node of the gram that starts there, or -1. Sequences are concatenated. A gram never extends into the next sequence,
because no node's gram contains `end`.

A step is a position of a symbol or of an end mark. The context of length d of a step consists of the d symbols before
the step. `end` also represents the positions before the first symbol of a sequence.
"""

from typing import Any

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Bools, Floats, Int32s, Int64s, Uint64s
from voxpop.kernels.numbering import count_pairs, slot_of, slots_for
from voxpop.kernels.proved import proved
from voxpop.kernels.uniform import uniform

NOBODY = 1e-12
FIT_ROUNDS = 6


@jit
def count_documents(tokens: Int32s, user_start: Int64s, names: Int32s, documents: Int64s) -> None:
    """Count each user's documents that contain at least one symbol.

    Args:
        tokens: int32, the tokens, with -1 after each document.
        user_start: int64 (users + 1), where each user's tokens begin.
        names: int32 by token, the symbol of the token, or -1.
        documents: int64 (users), overwritten by the number of documents.
    """
    for user in range(documents.size):
        count = 0
        held = False
        for position in range(user_start[user], user_start[user + 1]):
            token = tokens[position]
            if token < 0:
                # -1 ends a document. The document is counted if it contained a symbol.
                count += held
                held = False
            elif names[token] >= 0:
                held = True
        documents[user] = count + held


@jit
@proved("sequences.md#contexts")
def cut_sequences(
    tokens: Int32s, user_start: Int64s, names: Int32s, chosen: Int64s, most: int, end: int, symbols: Int32s
) -> int:
    """Write the first `most` symbols of each user's sequence, followed by `end`.

    Proof: "Tokens outside of the alphabet are removed, and the first L symbols are kept."

    Args:
        tokens: int32, the tokens, with -1 after each document.
        user_start: int64 (users + 1), where each user's tokens begin.
        names: int32 by token, the symbol of the token, or -1 for tokens that are removed before the cut.
        chosen: int64 (users), the index of the sequence among the documents with a symbol; -1 joins all documents.
        most: The maximum number of symbols per user.
        end: The end mark.
        symbols: int32, overwritten; with room for (most + 1) entries per user, or for one entry per token and per user.

    Returns:
        The number of symbols written. Nothing is written for users without symbols.
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
                # Tokens after the chosen document are not read.
                if chosen[user] >= 0 and document > chosen[user]:
                    break
            elif names[token] >= 0:
                held = True
                if chosen[user] < 0 or document == chosen[user]:
                    symbols[size] = names[token]
                    size += 1
                    taken += 1
                    # Cut the sequence to its first `most` symbols, so one user changes at most `most` counts on each
                    # level.
                    if taken == most:
                        break
        if taken:
            symbols[size] = end
            size += 1
    return size


@jit
@proved("sequences.md#proof-for-grams")
def count_children(symbols: Int32s, nodes: Int32s, depth: int, width: int) -> tuple[Int64s, Int64s]:
    """Count the pairs (node, next symbol) over all positions with a node, and number them in order of first appearance.

    Proof: "So all nodes that p affects are on one path from the root, and p adds at most 1 to each of their
    histograms."

    Args:
        symbols: int32, the symbol at each position.
        nodes: int32, the node of the gram that starts at each position, or -1. This array is overwritten by the number
            of the pair.
        depth: The length of the grams of the nodes.
        width: The number of symbols, including the end mark.

    Returns:
        The keys (node * width + symbol) and the counts of the pairs.
    """
    # `nodes` is also the output, in which the number of the pair replaces the node.
    return count_pairs(symbols, nodes, depth, width, nodes)


@jit
@proved("sequences.md#proof-for-grams")
def enter_children(nodes: Int32s, child: Int32s) -> None:
    """Replace the number of each pair with its node, or with -1 for a pair without a node.

    Proof: "An occurrence counted at v starts at some position p of S, and the gram of v is then a prefix of the symbols
    from p."
    """
    for position in range(nodes.size):
        if nodes[position] >= 0:
            nodes[position] = child[nodes[position]]


@jit
@proved("sequences.md#proof-for-contexts")
def open_steps(symbols: Int32s, end: int, most: int, nodes: Int32s) -> None:
    """Assign the root, node 0, to every step except end marks after `most` symbols.

    Proof: "An end is a step as well, so a sequence of K symbols or more has exactly K counted steps, and its end is not
    counted."

    Therefore a sequence has at most `most` steps.

    Args:
        symbols: int32, each sequence with its end mark.
        end: The end mark.
        most: The maximum number of symbols of a sequence.
        nodes: int32 by position, overwritten by the root or -1.
    """
    length = 0
    for position in range(symbols.size):
        if symbols[position] == end:
            # A sequence of `most` symbols has no step for its end. Therefore a user has at most `most` steps, and this
            # bound determines the noise scale (docs/privacy/sequences.md, "Contexts").
            nodes[position] = 0 if length < most else -1
            length = 0
        else:
            nodes[position] = 0
            length += 1


@jit
@proved("sequences.md#proof-for-contexts")
def count_following(symbols: Int32s, nodes: Int32s, width: int) -> tuple[Int64s, Int64s]:
    """Count the pairs (node, symbol) over all steps with a node.

    Proof: "In each node of its path, the step adds 1 to one bin."

    Args:
        symbols: int32, the symbol at each position.
        nodes: int32 by position, the node of the position or -1.
        width: The number of symbols, including the end mark.

    Returns:
        The keys (node * width + symbol), in order of first appearance, and their counts.
    """
    return count_pairs(symbols, nodes, 0, width, np.empty(0, np.int32))


@jit
@proved("sequences.md#proof-for-contexts")
def lengthen_contexts(
    symbols: Int32s, nodes: Int32s, depth: int, width: int, keys: Int64s, longer: Int32s, others: Int32s
) -> None:
    """Move each step to the node of its context extended by the preceding symbol.

    Proof: "So a step in a node is in exactly one of the node's children, if there are any."

    Args:
        symbols: int32, the symbol at each position.
        nodes: int32 by position, nodes of contexts of length `depth`, or -1. Overwritten.
        depth: The length of those contexts.
        width: The number of symbols, including the end mark.
        keys: The distinct keys, node * width + preceding symbol.
        longer: int32 by key, the node of the extended context.
        others: int32 by node, the new node of steps without a key, or -1.
    """
    size = 16
    # The size is a power of two, and at most half of the slots are full.
    while size < 2 * keys.size:
        size *= 2
    slots = slots_for(keys, keys.size, size)
    for position in range(nodes.size):
        node = nodes[position]
        if node < 0:
            continue
        # Read the symbol just before a context of length `depth`. An end mark belongs to the previous sequence, so in
        # that case the context is the beginning of its sequence.
        place = position - 1 - depth
        before = symbols[place] if place >= 0 else width - 1
        slot = slot_of(np.int64(node) * width + before, keys, slots)
        nodes[position] = longer[slots[slot]] if slots[slot] >= 0 else others[node]


@jit
def _node_of(history: Int32s, first: int, stop: int, begun: bool, width: int, child: Int32s, others: Int32s) -> Any:
    """Return the node of the longest context at the end of `history[first:stop]`.

    If `begun` is true, the history includes the start of the sequence.
    """
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
        # If the symbol has no separate node, it belongs to the node "others" or, if this node does not exist, to the
        # context itself.
        if longer < 0:
            return others[node] if others[node] >= 0 else node
        node = longer
        # This is the beginning of the sequence.
        if before == width - 1:
            return node


@jit
def nodes_of(rows: Int32s, lengths: Int64s, begun: Bools, width: int, tree: tuple[Int32s, Int32s]) -> Int32s:
    """Return the node of each history.

    Args:
        rows: int32 (histories, most), the symbols of each history from the left, in order of time.
        lengths: int64 by history, the number of symbols.
        begun: Whether each history includes the start of its sequence.
        width: The number of symbols, including the end mark.
        tree: The arrays `child` (int32 by node * width + preceding symbol, or -1) and `others` (int32 by node).

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
    """Return the next symbol, which is copied from an earlier position or drawn from the context's distribution.

    The latest position is chosen with probability `repeats`. Otherwise each earlier position is chosen with probability
    1 / (novelty + positions). If the context is empty, this second choice excludes the latest position. The symbol at
    the chosen position is copied if its context is the current context. Otherwise a symbol is drawn.
    """
    novelty, repeats = copies
    row, share = rows[length], (uniform(state) - repeats) / (1.0 - repeats)
    # Row 0 is the row of the empty context.
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
        # Inversion by bisection finds the first symbol with a running sum above a uniform number.
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
    """Fit the odds of an end to given lengths, and return the share of sequences of each length.

    No sequence ends in the simulation. Instead, each sequence is weighted by the probability that it continues, so the
    shares contain no noise except the noise of the contexts.

    Args:
        seeds: uint64, one per sequence; overwritten.
        width: The number of symbols, including the end mark.
        sums: float64 (nodes * width), see `draw_contexts`.
        tree: The arrays `child` and `others`, as in `nodes_of`.
        copies: See `draw_contexts`.
        wanted: float64 by length below the maximum, the fraction of sequences of at least this length that end there;
            negative values are not fitted.
        factors: float64 by length below the maximum, the factors of the odds of an end; overwritten for fitted lengths.

    Returns:
        float64 (maximum length + 1), the share of each length.
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
                # Newton's method would overshoot. Multiplying by the ratio of the odds converges within a few rounds.
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
        width: The number of symbols, including the end mark.
        sums: float64 (nodes * width), running sums of the probabilities at each node. The last sum of each node is 1.
        tree: The arrays `child` and `others`, as in `nodes_of`.
        copies: The novelty, which is the weight of the probabilities relative to one earlier symbol of the sequence;
            and the probability, below 1, that a copy of the latest symbol is tried first.
        factors: float64 by length below the maximum, the factors of the odds of an end at this length.
        symbols_out: int32, overwritten; with room for `most` symbols per seed.
        sizes: int64 by seed, overwritten by the length of the sequence.

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
            # The context of the symbols drawn so far in this sequence, which starts at `begin`.
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
@proved("sequences.md#proof-for-contexts")
def count_variety(symbols: Int32s, starts: Int64s, stops: Int64s, width: int, most: int) -> Int64s:
    """Count the distinct symbols, and the repetitions of the previous symbol, among the first symbols of sequences.

    Proof: "each of its first F symbols adds 1 to one of the numbers or to none, because a repeated symbol has occurred
    before and is not distinct"

    No symbol is counted twice, because a repeated symbol has already occurred in its sequence. Therefore a sequence
    changes the sum of both numbers by at most `most`.

    Args:
        symbols: int32, the symbols of all sequences.
        starts: int64 by sequence, the position of its first symbol.
        stops: int64 by sequence, the position after its last symbol.
        width: The number of symbols.
        most: The maximum number of symbols that are counted, from the start of a sequence.

    Returns:
        int64 (2), the sums of both numbers over the sequences.
    """
    counts = np.zeros(2, np.int64)
    # int64 by symbol, the latest sequence that contains the symbol.
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
    """Count the sessions that reach each step of a funnel.

    Args:
        symbols: int32, the symbols of all sessions, concatenated.
        starts: int64 (sessions + 1), where each session begins.
        steps: int32, the symbols of the funnel in order.
        within: The maximum distance, in symbols, from one step to the next.

    Returns:
        int64 by step, the number of sessions that contain all steps up to this step, in order, each at most `within`
        positions after the previous step.
    """
    counts = np.zeros(steps.size, np.int64)
    # int64 by step, the latest end of a match up to this step, or -1.
    last = np.empty(steps.size, np.int64)
    for session in range(starts.size - 1):
        last[:] = -1
        reached = 0
        for position in range(starts[session], starts[session + 1]):
            # Start at the last step, so that one position never matches two steps. A later position is always at least
            # as good.
            for step in range(min(reached, steps.size - 1), -1, -1):
                if symbols[position] != steps[step]:
                    continue
                if step == 0 or (last[step - 1] >= 0 and position - last[step - 1] <= within):
                    last[step] = position
                    reached = max(reached, step + 1)
        # A session that reaches a step has reached all earlier steps.
        for step in range(reached):
            counts[step] += 1
    return counts
