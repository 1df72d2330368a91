"""Kernels over a tree of released grams, in which a node without an entry falls back to its Markov neighbour.

A node is a gram whose continuations were released: `symbols[starts[v]:starts[v + 1]]`, rising, with their `chances` and
with the node that each leads to (`child`, -1 for none). Node 0 is the root. A symbol without an entry has the chance
`rest[v]` where that is at least 0, and otherwise `factor[v]` times the chance it has at `neighbour[v]`, the node of the
longest proper suffix of v's gram.
"""

from typing import Any

import numpy as np

from voxpop.arrays import Bools, Floats, Int32s, Int64s, Uint64s
from voxpop.kernels._jit import jit
from voxpop.kernels.uniform import uniform

Back = tuple[Int32s, Floats, Floats]  # neighbour, rest, factor by node

SIGNIFICANT = 16.0  # squared standard deviations of noise up to which a difference is taken for noise
LEAST_OUTSIDE = 1e-3  # expected mass of symbols without an entry below which they are ruled out; bounds redraws


@jit
def _entry(node: Any, symbol: Any, starts: Int64s, symbols: Int32s) -> Any:
    """Return the place of a symbol among a node's entries, or -1."""
    low, high = starts[node], starts[node + 1]
    while low < high:
        middle = (low + high) // 2
        if symbols[middle] < symbol:
            low = middle + 1
        else:
            high = middle
    return low if low < starts[node + 1] and symbols[low] == symbol else -1


@jit
def _chance(node: Any, symbol: Any, starts: Int64s, symbols: Int32s, chances: Floats, back: Back) -> Any:
    """Return the chance of a symbol at a node."""
    neighbour, rest, factor = back
    # P_v(x) is the entry's chance; else rest(v) where that is known; else factor(v) P_neighbour(x), and so on to the
    # root.
    product = 1.0
    while True:
        entry = _entry(node, symbol, starts, symbols)
        if entry >= 0:
            return product * chances[entry]
        if rest[node] >= 0.0:
            return product * rest[node]
        product *= factor[node]
        node = neighbour[node]


@jit
def _step(node: Any, symbol: Any, starts: Int64s, symbols: Int32s, child: Int32s, neighbour: Int32s) -> Any:
    """Return the node of the longest suffix of a node's gram and one more symbol."""
    while True:
        entry = _entry(node, symbol, starts, symbols)
        if entry >= 0 and child[entry] >= 0:
            return child[entry]
        if node == 0:
            return 0
        node = neighbour[node]


@jit
def follow(at: Int32s, by: Int32s, starts: Int64s, symbols: Int32s, child: Int32s, neighbour: Int32s) -> Int32s:
    """Return where each symbol of `by` leads from each node of `at`.

    Args:
        at: int32 (n), nodes.
        by: int32 (n), one symbol for each.
        starts: int64 (nodes + 1).
        symbols: int32 by entry.
        child: int32 by entry.
        neighbour: int32 by node.

    Returns:
        int32 (n), the node of the longest suffix of each node's gram and its symbol.
    """
    reached = np.empty(at.size, np.int32)
    for number in range(at.size):
        reached[number] = _step(at[number], by[number], starts, symbols, child, neighbour)
    return reached


@jit
def look_up(at: Int32s, by: Int32s, starts: Int64s, symbols: Int32s, chances: Floats, back: Back) -> Floats:
    """Return the chance of each symbol of `by` at each node of `at`, float64 (n); see `follow`."""
    found = np.empty(at.size, np.float64)
    for number in range(at.size):
        found[number] = _chance(at[number], by[number], starts, symbols, chances, back)
    return found


@jit
def settle(
    first: int, width: int, counts: Int64s, totals: Floats, starts: Int64s, symbols: Int32s, chances: Floats, back: Back
) -> None:
    """Make the entries of the nodes from `first` on consistent with their parents, as published (CAC12, 4.3.4).

    Where the neighbour is not the root, symbols without an entry get A(x) = S P(x) / P(V+), for S the sum of the noisy
    counts A of the entries V+ and P the neighbour's chances. Divided by the sum over all symbols, S / P(V+), that is
    P(x) itself, and entries get A / S times P(V+). Where it is the root, what S lacks to the node's total is shared
    evenly among symbols without an entry.

    Args:
        first: the first node to settle; those before are settled.
        width: number of symbols and the end mark.
        counts: int64 by entry, noisy, at least 0, with a positive sum at every node but the root.
        totals: float64 by node, the consistent count of its gram.
        starts: int64 (nodes + 1).
        symbols: int32 by entry.
        chances: float64 by entry, written from `first` on.
        back: neighbour (int32), rest and factor (float64, written from `first` on) by node.
    """
    neighbour, rest, factor = back
    for node in range(first, starts.size - 1):
        total = 0.0
        for entry in range(starts[node], starts[node + 1]):
            total += counts[entry]
        # How many symbols have no entry. `mass` is what those with one have together, P(V+) in the text above.
        missing = width - (starts[node + 1] - starts[node])
        mass = 1.0
        rest[node] = 0.0
        factor[node] = 1.0
        if missing > 0 and neighbour[node] > 0:
            mass = 0.0
            for entry in range(starts[node], starts[node + 1]):
                mass += _chance(neighbour[node], symbols[entry], starts, symbols, chances, back)
            # A rest of -1 sends symbols without an entry to the neighbour, with factor 1: their chance is P(x) itself.
            rest[node] = -1.0 if mass > 0.0 else 0.0
            mass = min(mass, 1.0) if mass > 0.0 else 1.0
        elif missing > 0 and node > 0 and total < totals[node]:
            # Beside the root: the node's total less S, shared evenly.
            mass = total / totals[node]
            rest[node] = (1.0 - mass) / missing
        for entry in range(starts[node], starts[node + 1]):
            # A(x) / S times P(V+).
            chances[entry] = counts[entry] / total * mass if total > 0.0 else 0.0


@jit
def _trusted(seen: float, expected: float, noise: float) -> float:
    """Move from what is expected to what was seen as far as it stands out from noise: the nonnegative garrote."""
    # With s the noise's standard deviation: expected + gap max(0, 1 - 16 s^2 / gap^2) (Breiman, 1995).
    gap = seen - expected
    if gap * gap <= SIGNIFICANT * noise:
        return expected
    return expected + gap * (1.0 - SIGNIFICANT * noise / (gap * gap))


@jit
def settle_balanced(
    first: int,
    width: int,
    counts: Int64s,
    totals: Floats,
    starts: Int64s,
    symbols: Int32s,
    chances: Floats,
    back: Back,
    scales: Floats,
    thresholds: Floats,
) -> None:
    """Make entries consistent with their parents, trusting what stands out from noise: ours.

    The neighbour expects c(v) P(x) of each symbol. A noisy count replaces that as far as it differs by more than noise
    explains (`_trusted`), and so does what the noisy counts leave of c(v) for all symbols without an entry together,
    which is shared in proportion to the neighbour's chances. Where the neighbour is the root, which knows little of
    what follows what, every count is trusted. The root keeps one part in `width` for what has no entry there.

    The arguments are those of `settle`, and two more: `scales`, float64 by node, of the noise on its entries; and
    `thresholds`, float64 by node, which children without an entry did not pass.
    """
    neighbour, rest, factor = back
    for node in range(first, starts.size - 1):
        held = starts[node + 1] - starts[node]
        # Laplace noise of scale b has the variance 2 b^2. Beside the root every count is trusted: no noise.
        variance = 2.0 * scales[node] ** 2 if neighbour[node] > 0 else 0.0
        outside = 1.0
        noisy = 0.0
        total = 0.0
        for entry in range(starts[node], starts[node + 1]):
            noisy += counts[entry]
            chances[entry] = counts[entry]
            if node > 0:
                expected = _chance(neighbour[node], symbols[entry], starts, symbols, chances, back)
                # 1 - sum of P over the entries: what the neighbour leaves to symbols without one.
                outside -= expected
                chances[entry] = max(_trusted(counts[entry], totals[node] * expected, variance), 0.0)
            total += chances[entry]
        left = 0.0
        rest[node] = 0.0
        factor[node] = 0.0
        if node == 0:
            left = total / (width - 1)
            # One part in `width`, shared by the symbols without an entry; `left` makes the entries sum to the other
            # parts.
            rest[node] = 1.0 / width / max(width - held, 1)
        elif outside > LEAST_OUTSIDE and held < width:
            # c(v) less the noisy counts carries the noise of all `held` of them. Symbols without an entry did not pass
            # the threshold, so together they have that many times it at most.
            left = _trusted(totals[node] - noisy, outside * totals[node], held * variance)
            left = min(max(left, 0.0), (width - held) * thresholds[node])
            rest[node] = -1.0
            # left / (total + left) is their share, and factor P sums to it over them.
            factor[node] = left / max(total + left, 1e-300) / outside
        for entry in range(starts[node], starts[node + 1]):
            chances[entry] /= max(total + left, 1e-300)


@jit
def likeliest(wanted: Bools, width: int, starts: Int64s, symbols: Int32s, chances: Floats, back: Back) -> Floats:
    """Return the largest chance of any symbol at each wanted node, 0 elsewhere."""
    neighbour, rest, factor = back
    largest = np.zeros(wanted.size, np.float64)
    for node in range(wanted.size):
        if not wanted[node]:
            continue
        best = 0.0
        other = node
        product = 1.0
        while True:
            for entry in range(starts[other], starts[other + 1]):
                if product * chances[entry] > best:
                    # It counts only where no nearer node has an entry of its own.
                    best = max(best, _chance(node, symbols[entry], starts, symbols, chances, back))
            if rest[other] >= 0.0:
                break
            product *= factor[other]
            other = neighbour[other]
        # Symbols without an entry anywhere on the way share the last node's rest.
        if product * rest[other] > best:
            for symbol in range(width):
                best = max(best, _chance(node, symbol, starts, symbols, chances, back))
                if best >= product * rest[other]:
                    break
        largest[node] = best
    return largest


@jit
def _pick(node: Any, place: Any, starts: Int64s, sums: Floats) -> Any:
    """Return the first entry of a node whose running sum exceeds `place`, or -1."""
    low, high = starts[node], starts[node + 1]
    if low == high or place >= sums[high - 1]:
        return -1
    while low < high:
        middle = (low + high) // 2
        if sums[middle] > place:
            high = middle
        else:
            low = middle + 1
    return low


@jit
def _draw(
    node: Any,
    width: int,
    starts: Int64s,
    symbols: Int32s,
    sums: Floats,
    neighbour: Int32s,
    rest: Floats,
    state: Uint64s,
) -> Any:
    """Draw a symbol at a node, falling back to its neighbours for symbols without an entry."""
    at = node
    for _ in range(100_000):
        entry = _pick(at, uniform(state), starts, sums)
        if entry < 0 and rest[at] < 0.0:
            at = neighbour[at]
            continue
        if entry >= 0:
            symbol = symbols[entry]
        else:
            # A symbol without an entry: drawn from all, and again where it has one.
            symbol = np.int32(uniform(state) * width)
            if rest[at] == 0.0 or _entry(at, symbol, starts, symbols) >= 0:
                continue
        # A draw at `at` becomes one at the node before it where that has no entry for it; else it is drawn again.
        while at != node:
            before = node
            while neighbour[before] != at:
                before = neighbour[before]
            if _entry(before, symbol, starts, symbols) >= 0:
                break
            at = before
        if at == node:
            return symbol
    return width - 1


@jit
def sample_sequences(
    seeds: Uint64s,
    most: int,
    width: int,
    tree: tuple[Int64s, Int32s, Int32s, Floats, Int32s, Floats],
    opening: tuple[Int64s, Int32s, Int32s, Floats],
    symbols_out: Int32s,
    sizes: Int64s,
) -> int:
    """Draw whole sequences, without end marks.

    Args:
        seeds: uint64, one per sequence; overwritten.
        most: most symbols of a sequence.
        width: number of symbols and the end mark.
        tree: starts, symbols, child, running sums, neighbour, rest.
        opening: starts, symbols, child, running sums of the openings: what sequences begin with.
        symbols_out: int32, written; room for `most` symbols per seed.
        sizes: int64 by seed, written.

    Returns:
        How many symbols were written.
    """
    starts, symbols, child, sums, neighbour, rest = tree
    first_starts, first_symbols, first_child, first_sums = opening
    size = 0
    for number in range(seeds.size):
        state = seeds[number : number + 1]
        node = np.int32(0)
        opened = np.int32(0)
        begin = size
        while size - begin < most:
            entry = np.int64(-1)
            if opened >= 0:
                entry = _pick(opened, uniform(state), first_starts, first_sums)
            if entry >= 0:
                symbol = first_symbols[entry]
            else:
                symbol = _draw(node, width, starts, symbols, sums, neighbour, rest, state)
                for _ in range(10_000):
                    if opened < 0 or _entry(opened, symbol, first_starts, first_symbols) < 0:
                        break
                    symbol = _draw(node, width, starts, symbols, sums, neighbour, rest, state)
            if symbol == width - 1:
                break
            symbols_out[size] = symbol
            size += 1
            opened = first_child[entry] if entry >= 0 else np.int32(-1)
            node = _step(node, symbol, starts, symbols, child, neighbour)
        sizes[number] = size - begin
    return size
