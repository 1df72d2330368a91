"""Reference implementation of the engine contract in plain Python, with users and weights in dicts.

Every mechanism runs on this engine and returns the same releases as on other engines, so the contract is sufficient.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa

from naive.ngrams import Documents
from support.corpora import corpus_of
from voxpop.engine.contract import no_order
from voxpop.reading.keys import NO_KEYS, Keys, _fields

Name = str | int


@dataclass
class NaiveEngine:
    """An engine with the documents of each user, as lists of tokens, in a dict by user key."""

    users: dict[int, Documents]
    kind: str = "tokens"
    token_source: str = "tokens"
    keys: Keys = NO_KEYS
    families: dict[str, str] = field(default_factory=dict)

    def weigh(self, shares, limit, secret, pass_name):
        users = [
            (key, [token for document in documents for token in document])
            for key, documents in self.in_order(shares, secret, pass_name)
        ]
        return NaiveWeights(weighed(users, lambda word: text_name(secret, word), shares, limit, secret, pass_name))

    def pools(self, secret):
        return NaivePools(self, secret)

    def length_walk(self):
        return NaiveLengths(self)

    def tree_walk(self, alphabet, max_length, secret, other=None):
        held = self.users
        if other is not None:
            held = {
                key: [[token if token in alphabet else other for token in document] for document in documents]
                for key, documents in held.items()
            }
        cut = (one_sequence(key, documents, alphabet, max_length, secret) for key, documents in held.items())
        return NaiveTree([symbols for symbols in cut if symbols], len(alphabet), max_length)

    def only(self, keys, listed):
        def kept(token):
            number, *values = list(_fields(token))
            names = keys.sets[int(number)]
            if listed is None or len(names) == 1:
                return listed is None and len(names) == 1
            singles = {tuple(_fields(single)) for single in listed.to_pylist()}
            return all((str(keys.names[name]), value) in singles for name, value in zip(names, values, strict=True))

        users = {key: [[t for t in document if kept(t)] for document in held] for key, held in self.users.items()}
        return NaiveEngine(users, "items", self.token_source)

    def with_more(self, items):
        users = {key: held for key, held in self.users.items() if len({t for each in held for t in each}) > items}
        return NaiveEngine(users, self.kind, self.token_source)

    def row_shares(self, listed, columns, unit):
        weights: dict[Name, int] = {}
        for documents in self.users.values():
            tokens = [token for document in documents for token in document]
            for column in range(columns):
                mine = [token in listed.to_pylist() for token in tokens if token.split("|")[0] == str(column)]
                for rank, count in ((2 * column, sum(mine)), (2 * column + 1, len(mine) - sum(mine))):
                    weights[rank] = weights.get(rank, 0) + (count * unit // len(mine) if mine else 0)
        return NaiveWeights(weights)

    def nights(self, state, secret, *, first):
        return state

    def gathered(self):
        return corpus_of(list(self.users.values()), list(self.users))

    def in_order(self, shares, secret, pass_name):
        """Return keys and documents.

        If the weighting depends on the order of users, the users are sorted by a keyed hash and, for equal hashes, by
        the key.
        """
        if not shares.sequential:
            return list(self.users.items())
        keyed = zip(draws(secret, f"order/{pass_name}", list(self.users), 0), self.users, strict=True)
        return [(key, self.users[key]) for _, key in sorted(keyed)]


def draws(secret, purpose: str, first: list[int], second: int) -> list[int]:
    """Return the 64 random bits of each pair of numbers."""
    return secret.draws(purpose, np.array(first, np.uint64), second)[:, 0].tolist()


@lru_cache(maxsize=1 << 14)
def text_names(secret, word: str) -> tuple[int, int]:
    """Return both numbers that identify a word in draws. They are cached, because every user and round needs them."""
    content = np.frombuffer(word.encode(), np.uint8)
    high, low = secret.text_draws("words", content, np.array([0, content.size]))[0].tolist()
    return high, low


def text_name(secret, word: str) -> int:
    """Return the number that identifies a word in sampling draws."""
    return text_names(secret, word)[0]


def weighed(
    users: Iterable[tuple[int, list[Name]]],
    name_of: Callable[[Name], int],
    shares,
    limit,
    secret,
    pass_name,
    *,
    kept: bool = False,
    bounds: dict[int, np.ndarray] | None = None,
) -> dict[Name, int]:
    """Reduce the distinct items of each user to the limit, and distribute the user's weight, times the user's bound."""
    weights: dict[Name, int] = {}
    users = list(users)
    ranks = range(1 + max((item for _, held in users for item in held), default=0)) if kept else range(0)
    for key, held in users:
        items = list(dict.fromkeys(held))
        items = smallest(items, name_of, limit, secret, pass_name, key)
        # The ids of kept items are their ranks in a histogram of all ranks. The ids of other items are arbitrary.
        ids, names = (items, ranks) if kept else (range(len(items)), items)
        mine = np.array([weights.get(name, 0) for name in names] or [0], np.int64)
        given = () if bounds is None else (bounds[key],)
        shares.add(mine, np.array(ids, np.int32), np.array([0, len(items)]), *given)
        weights.update(zip(names, mine.tolist(), strict=False))
    return {item: weight for item, weight in weights.items() if weight}


def smallest(items, name_of, limit, secret, pass_name, key):
    """Return the `limit` items of a user with the smallest draws, in their original order."""
    if len(items) <= limit:
        return items
    names = np.array([name_of(item) for item in items], np.uint64)
    drawn = secret.draws(f"sample/{pass_name}", np.full(len(items), key, np.uint64), names)[:, 0]
    priority = dict(zip(items, drawn.tolist(), strict=True))
    lowest = set(sorted(items, key=priority.__getitem__)[:limit])
    return [item for item in items if item in lowest]


@dataclass
class NaiveWeights:
    """The weight of each item. Items are words at length 1 and names of grams at other lengths."""

    weights: dict[Name, int]
    words: list[str] = field(default_factory=list)

    def chosen(self, decision):
        return np.array(self._named([item for item in self.weights if self._ask(decision, item)]), np.int64)

    def noisy_levels(self, levels, spurious_names, theirs):
        found = {item: int(self._ask(levels, item)) for item in self.weights}
        found |= {
            name: level
            for name, level in zip(spurious_names.tolist(), theirs.tolist(), strict=True)
            if name not in found
        }
        reached = sorted(item for item, level in found.items() if level > 0)
        return np.array(self._named(reached), np.int64), np.array([found[item] for item in reached], np.int64)

    def texts(self, ids):
        return pa.array([self.words[number] for number in ids], pa.large_string())

    def measured(self, noise, size):
        weights = np.array([self.weights.get(rank, 0) for rank in range(size)], np.int64)
        return noise(weights, np.arange(size))

    def _named(self, items):
        if not all(isinstance(item, str) for item in items):
            return sorted(items)
        self.words = sorted(items, key=str.encode)
        return range(len(items))

    def _ask(self, answer, item):
        weight = np.array([self.weights[item]])
        if isinstance(item, int):
            return answer(weight, np.array([item]), None)[0]
        content = np.frombuffer(item.encode(), np.uint8)
        return answer(weight, np.empty(0, np.int64), (content, np.array([0, content.size])))[0]


class NaivePools:
    """The pools of adaptive rounds, with the undecided items of each user and the score of each item."""

    def __init__(self, engine: NaiveEngine, secret):
        self.secret, self.found, self.score, self.states = secret, set(), {}, {}
        self.listed, self.reached = set(), {}
        self.users = []
        for key, documents in engine.in_order(Sequential(), secret, "adaptive rounds/length 1"):
            self.users.append((key, list(dict.fromkeys(token for document in documents for token in document))))

    def name(self, word):
        return text_name(self.secret, word)

    def sizes(self, edges):
        held = [len(items) for _, items in self.users if items]
        return NaiveWeights(dict(Counter(sum(size >= edge for edge in edges) for size in held)))

    def first_round(self, shares, limit, decision, pass_name):
        weights = NaiveWeights(weighed(self.users, self.name, shares, limit, self.secret, pass_name))
        self.decide({weights.words[number] for number in weights.chosen(decision)}, released=True)

    def draw(self, size, pass_name):
        drawn = []
        for key, items in self.users:
            unlisted = [item for item in items if item not in self.listed]
            first = smallest(unlisted, self.name, size, self.secret, pass_name, key)
            drawn.append((key, [item for item in items if item in first or item in self.listed]))
        self.users = drawn

    def recognise(self, listed):
        self.listed = {item for part in listed for item in part.to_pylist()}

    def levels(self):
        reached = {item: level for item, level in self.reached.items() if level}
        return pa.array(list(reached), pa.large_string()), np.array(list(reached.values()), np.uint8)

    def advance(self, shares, step, pass_name):
        weights = {}
        keys = [key for key, _ in self.users]
        parts = draws(self.secret, f"part/{pass_name}", keys, 0) if shares.draws else [None] * len(keys)
        for (key, pool), part in zip(self.users, parts, strict=True):
            items = self.undecided(pool)
            if not items:
                continue
            dropped = sum(self.states.get(item) == 1 and item not in self.listed for item in pool)
            counts = np.array([len(items)]), np.array([dropped])
            listed = np.array([len(self.listed & set(items))])
            bits = None if part is None else np.array([part], np.uint64)
            given = shares.given(*counts, bits, listed)
            items = smallest(items, self.name, shares.limit, self.secret, pass_name, key)
            mine = np.array([weights.get(item, 0) for item in items], np.int64)
            states = np.array([self.states.get(item, 255) for item in items], np.uint8)
            marks = np.array([item in self.listed for item in items], np.uint8)
            shares.add(mine, np.arange(len(items), dtype=np.int32), np.array([0, len(items)]), states, given, marks)
            weights.update(zip(items, mine.tolist(), strict=False))
        for item in {item for _, pool in self.users for item in self.undecided(pool)}:
            name = np.array([text_names(self.secret, item)], np.uint64)
            before = np.array([self.score.get(item, 0.0)])
            weight = np.array([weights.get(item, 0)])
            if item in self.listed:
                (self.score[item],), (self.states[item],), (level,) = step.known(weight, name, before)
                self.reached[item] = max(level, self.reached.get(item, 0))
                continue
            after, state = step(weight, name, before)
            self.score[item], self.states[item] = float(after[0]), int(state[0])
            self.found |= {item} if state[0] == 0 else set()

    def undecided(self, pool):
        return [item for item in pool if self.states.get(item, 255) > 1]

    def decide(self, items, *, released):
        self.found |= items if released else set()
        self.users = [(key, [item for item in held if item not in items]) for key, held in self.users]

    def released(self):
        return pa.array(sorted(self.found, key=str.encode), pa.large_string())


class Sequential:
    """A stand-in for a weighting with results that depend on the order of users."""

    sequential = True


class NaiveLengths:
    """The state of passes over lengths, with grams as tuples, names of candidates, and remaining budgets of users."""

    def __init__(self, engine: NaiveEngine):
        self.engine, self.length, self.last, self.kept = engine, 1, None, False
        self.names: dict[tuple[str, ...], Name] | None = None  # None at length 1, because words are names.
        self.words: dict[str, int] = {}
        self.left: dict[int, int] = {}
        self.deferred: dict[tuple[str, ...], int] = {}
        self.deferred_size = 0

    def weigh(self, shares, limit, secret, pass_name, charge=None, among=None):
        held = {}
        for key, documents in self.engine.in_order(shares, secret, "all lengths"):
            named = [[self._name(gram, among) for gram in grams] for grams in self._held(documents, self.length)]
            held[key] = named
        return self._weighed(held, shares, limit, secret, pass_name, charge, kept=self.kept)

    def weigh_deferred(self, shares, limit, secret, pass_name, charge):
        held = {}
        for key, documents in self.engine.in_order(shares, secret, "all lengths"):
            grams = [
                gram for length in range(2, self.length + 1) for each in self._held(documents, length) for gram in each
            ]
            held[key] = [[self.deferred.get(gram) for gram in grams]]
        return self._weighed(held, shares, limit, secret, pass_name, charge, kept=True)

    def _weighed(self, held, shares, limit, secret, pass_name, charge, *, kept):
        bounds = None if charge is None else {key: self._pay(charge, key, named) for key, named in held.items()}
        users = [(key, [name for each in named for name in each if name is not None]) for key, named in held.items()]

        def name_of(item):
            return text_name(secret, item) if isinstance(item, str) else item

        self.last = NaiveWeights(weighed(users, name_of, shares, limit, secret, pass_name, kept=kept, bounds=bounds))
        return self.last

    def _pay(self, charge, key, named):
        """Charge a user according to the user's longest run of candidates in a document."""
        longest = max((len(run) for each in named for run in runs_in(each)), default=0)
        left = self.left.get(key, charge.whole)
        cost = charge.costs(np.array([left]), np.array([longest > 0]), np.array([longest]))
        self.left[key] = left - int(cost[0])
        return charge.bounds(cost)

    def keep(self, names, deferred=None):
        if self.names is None:
            self.keep_words(self.last.texts(names))
            return
        for place, name in enumerate([] if deferred is None else deferred.tolist(), self.deferred_size):
            self.deferred |= {gram: place for gram, mine in self.names.items() if mine == name}
        self.deferred_size += 0 if deferred is None else deferred.size
        rank = {name: place for place, name in enumerate(names.tolist())}
        self.names = {gram: rank[name] for gram, name in self.names.items() if name in rank}
        self.kept = True

    def keep_words(self, words, order=None):
        self.words = {word: place for place, word in enumerate(words.to_pylist())}
        self.names = {(word,): place for word, place in self.words.items()}
        self.kept = True

    def extend(self, candidates):
        if self.engine.kind == "items":
            raise no_order()
        self.length, self.kept = self.length + 1, False
        pairs = {}
        for documents in self.engine.users.values():
            for gram in (gram for grams in self._held(documents, self.length) for gram in grams):
                left = self.names.get(gram[:-1])
                partner = self.words.get(gram[-1]) if candidates.single else self.names.get(gram[1:])
                if left is not None and partner is not None and candidates.estimates[partner] >= candidates.need[left]:
                    pairs[gram] = (left << 32) | partner
        self.names = pairs

    def _held(self, documents, length):
        """Yield the list of grams of each document."""
        for document in documents:
            yield [tuple(document[i : i + length]) for i in range(len(document) - length + 1)]

    def _name(self, gram, among):
        if self.names is None:
            return gram[0]
        name = self.names.get(gram)
        return name if name is None or among is None or among.holds(np.array([name]))[0] else None


def runs_in(named):
    """Yield, for each position, the run of values other than None that ends at this position."""
    run = []
    for name in named:
        run = [*run, name] if name is not None else []
        yield run


def one_sequence(key, documents, alphabet, max_length, secret):
    """Return the symbols of one sequence of a user, drawn at random if the user has several sequences."""
    number = {symbol: place for place, symbol in enumerate(alphabet)}
    cut = [[number[token] for token in document if token in number] for document in documents]
    cut = [symbols for symbols in cut if symbols]
    if not cut:
        return []
    drawn = draws(secret, "sequences/sample", [key], 0)[0] >> 32 if len(cut) > 1 else 0
    return cut[drawn * len(cut) >> 32][:max_length]


class NaiveTree:
    """Sequences with an end mark, and the number of the context of each step, by sequence and position."""

    def __init__(self, sequences, end, max_length):
        self.sequences, self.end = sequences, end
        steps = (range(min(len(symbols) + 1, max_length)) for symbols in sequences)
        self.under = {(which, place): 0 for which, places in enumerate(steps) for place in places}

    def released(self, counted, noise, *given):
        return getattr(self, f"_{counted}")(noise, *given)

    def _lengths(self, noise, first):
        classes = [sum(len(symbols) >= least for least in first.tolist()) - 1 for symbols in self.sequences]
        return noise(
            np.array(sorted(set(classes)), np.int64), np.array([classes.count(k) for k in sorted(set(classes))])
        )

    def _variety(self, noise, given):
        most, bins = given.tolist()
        firsts = [list(symbols)[:most] for symbols in self.sequences]
        repeated = sum(one == other for symbols in firsts for one, other in pairwise(symbols))
        counts = [sum(len(set(symbols)) for symbols in firsts), repeated]
        return noise(np.arange(bins), np.array(counts[:bins]))

    def count_first(self, steps):
        self.under = {(which, place): node for (which, place), node in self.under.items() if place < steps}

    def _following(self, noise):
        counts: dict[int, int] = {}
        for (which, place), node in self.under.items():
            key = node * (self.end + 1) + [*self.sequences[which], self.end][place]
            counts[key] = counts.get(key, 0) + 1
        return noise(np.array(list(counts), np.int64), np.array(list(counts.values()), np.int64))

    def lengthen(self, depth, keys, longer, others):
        leads = dict(zip(keys.tolist(), longer.tolist(), strict=True))
        moved = {}
        for (which, place), node in self.under.items():
            before = self.sequences[which][place - 1 - depth] if place > depth else self.end
            moved[which, place] = leads.get(node * (self.end + 1) + before, int(others[node]))
        self.under = {step: node for step, node in moved.items() if node >= 0}
