"""Reference implementation of the CAC12 model and of drawing from contexts, with dicts, loops and fractions."""

from collections import Counter
from fractions import Fraction
from math import ceil, floor, log

END = "&"
ROOT = ()


def truncate(tokens, alphabet, max_length):
    """Remove tokens that are not in the alphabet, and then keep the first `max_length` tokens."""
    return [token for token in tokens if token in alphabet][:max_length]


def count_grams(sequences, longest):
    """Count every gram of up to `longest` symbols. The end mark can be the last symbol, but never the only symbol."""
    counts = Counter()
    for sequence in sequences:
        if not sequence:
            continue
        marked = [*sequence, END]
        for start in range(len(sequence)):
            for stop in range(start + 1, min(len(marked), start + longest) + 1):
                counts[tuple(marked[start:stop])] += 1
    return counts


class Node:
    """A gram with noisy counts of its continuations."""

    def __init__(self, gram, share, spent, height):
        self.gram, self.share, self.spent, self.height = gram, share, spent, height
        self.noisy, self.released, self.count = {}, set(), {}

    def chances(self):
        total = sum(self.count.values())
        return (
            {symbol: value / total for symbol, value in self.count.items()} if total else dict.fromkeys(self.count, 0)
        )


def explore(sequences, alphabet, max_length, max_gram, epsilon, noise, keep_all=True, fixed_threshold=None):
    """Return a dict from grams to the nodes that released a symbol (CAC12, Algorithm 1 and Sections 4.3.2 to 4.3.4).

    `noise(number, place, share)` returns the noise for a node and a symbol. Nodes are numbered by level, in the order
    of grams.
    """
    bins = [*alphabet, END]
    truth = count_grams(sequences, max_gram)
    nodes, level, number = {}, [Node(ROOT, Fraction(1, max_gram), Fraction(0), max_gram)], 0
    for depth in range(max_gram):
        for node in level:
            _add_noise(node, bins, truth, noise, number, max_length, epsilon, keep_all, fixed_threshold)
            number += 1
        level = [node for node in level if node.gram == ROOT or sum(node.noisy[x] for x in node.released) > 0]
        nodes.update({node.gram: node for node in level})
        for node in level:
            _make_consistent(node, nodes, bins)
        level = [child for node in level for child in _children(node, nodes, bins, max_gram, depth)]
    return nodes


def threshold(node, alphabet_size, max_length, epsilon):
    return float(max_length / (epsilon * node.share)) * log(max(alphabet_size, 3) / 2)


def _add_noise(node, bins, truth, noise, number, max_length, epsilon, keep_all, fixed_threshold):
    node.theta = fixed_threshold or threshold(node, len(bins) - 1, max_length, epsilon)
    for place, symbol in enumerate(bins):
        if node.gram == ROOT and symbol == END:
            continue
        count = truth[(*node.gram, symbol)] + noise(number, place, node.share)
        if (keep_all and (node.gram == ROOT or node.height <= 1)) or count >= floor(node.theta) + 1:
            node.released.add(symbol)
        node.noisy[symbol] = max(count, 0)


def markov_neighbour(gram, nodes):
    """Return the node of the longest proper suffix that has a node."""
    for start in range(1, len(gram) + 1):
        if gram[start:] in nodes:
            return nodes[gram[start:]]
    return nodes[ROOT]


def _make_consistent(node, nodes, bins):
    if node.gram == ROOT:
        node.count = {x: node.noisy[x] if x in node.released else 0 for x in bins}
        return
    parent = nodes[node.gram[:-1]].count[node.gram[-1]]
    near = markov_neighbour(node.gram, nodes)
    total = sum(node.noisy[x] for x in node.released)
    missing = [x for x in bins if x not in node.released]
    value = {x: node.noisy[x] for x in node.released}
    if near.gram != ROOT:
        chances = near.chances()
        mass = sum(chances[x] for x in node.released)
        value.update({x: total * chances[x] / mass if mass else 0 for x in missing})
    else:
        value.update({x: (parent - total) / len(missing) if total < parent else 0 for x in missing})
    whole = sum(value.values())
    node.count = {x: parent * value[x] / whole for x in bins}


def _children(node, nodes, bins, max_gram, depth):
    if node.height <= 1:
        return
    for symbol in bins[:-1]:
        if symbol not in node.released or node.noisy[symbol] <= node.theta:
            continue
        gram = (*node.gram, symbol)
        largest = max(markov_neighbour(gram, nodes).chances().values())
        most = max_gram - depth - 1
        height = most
        if largest < 1:
            height = max(1, min(most, ceil(log(node.theta / node.noisy[symbol]) / log(largest))))
        spent = node.spent + node.share
        yield Node(gram, (1 - spent) / height, spent, height)


def synthesize(counts, max_length, order):
    """Draw sequences (CAC12, Section 4.3.5) from a dict of grams and counts. The last symbol of a gram can be END.

    `order` is a sort key of grams, which are processed from the last to the first.
    """
    counts = {gram: count for gram, count in counts.items() if count > 0}
    length = max(map(len, counts))
    while length < max_length:
        longest = [gram for gram in counts if len(gram) == length]
        if len(longest) < 2:
            break
        longer = {}
        for one in longest:
            for other in longest:
                if one[1:] == other[:-1] and one[-1] != END and counts.get(one[1:], 0) > 0:
                    expected = floor(counts[one] * counts[other] / counts[one[1:]])
                    if expected >= 1:
                        longer[(*one, other[-1])] = expected
        counts.update(longer)
        length += 1
    left, result = dict(counts), {}
    for gram in sorted(counts, key=order, reverse=True):
        many = left[gram]
        if gram[-1] == END or many <= 0:
            continue
        parts = Counter(
            gram[start : start + size] for size in range(1, len(gram)) for start in range(len(gram) - size + 1)
        )
        if all(left.get(part, 0) - many * times >= 0 for part, times in parts.items()):
            result[gram] = many
            for part, times in parts.items():
                left[part] -= many * times
    return result


def draw_together(chances, ends, copies, numbers, start):
    """Draw all sequences step by step, sorted by their histories with the latest symbol first.

    Args:
        chances: A function that returns the context of a history, the probability of each next symbol, and the
            probability of an end.
        ends: The factors by which the odds of an end are multiplied, by length.
        copies: The weight of new symbols relative to one earlier symbol, and the probability that the latest symbol is
            copied.
        numbers: One function per sequence that returns its next uniform number.
        start: A function that returns the next uniform number that all sequences share.
    """
    drawn, going, golden = [[] for _ in numbers], list(range(len(numbers))), (5**0.5 - 1) / 2
    for factor in ends:
        going.sort(key=lambda number: drawn[number][::-1])
        first, stay_on = start(), []
        for rank, number in enumerate(going):
            _, *_, end = chances(drawn[number])
            if (rank * golden + first) % 1 * (1 - end + end * factor) < 1 - end:
                stay_on.append(number)
        going, second, rank = stay_on, start(), 0
        for number in going:
            history = drawn[number]
            contexts = [chances(history[:place])[0] for place in range(len(history) + 1)]
            novelty, repeats = copies
            # The symbols at these places may be copied. After the empty context, the latest symbol is copied only with
            # probability `repeats`.
            places, share = list(range(len(history))), numbers[number]()
            if share < repeats:
                chosen = places[-1:]
            else:
                places = places[:-1] if contexts[-1] == 0 else places
                count = len(history) - (contexts[-1] == 0)
                chosen = places[int((share - repeats) / (1 - repeats) * (novelty + count)) :][:1]
            if chosen and contexts[chosen[0]] == contexts[-1]:
                history.append(history[chosen[0]])
                continue
            _, *symbols, end = chances(history)
            wanted = (rank * golden + second) % 1 * (1 - end)
            history.append(next(symbol for symbol in range(len(symbols)) if sum(symbols[: symbol + 1]) > wanted))
            rank += 1
    return drawn
