"""Functions that return private weights without noise to tests. Gates reject any other caller."""

import numpy as np
import pytest

from voxpop.mechanisms.counts.releasing import listed_grams, sizes_of
from voxpop.privacy.gate import counts
from voxpop.privacy.opening import Opening
from voxpop.privacy.passes import Certificate, Claim, Counted, CountsProof, PicksProof
from voxpop.privacy.secret import Secret


class Exact(Opening):
    """A replacement for noise that returns exact weights.

    Attributes:
        seen: The weights of every pass.
    """

    def __init__(self):
        self.seen = []

    def __call__(self, weights, names, *others):
        """Record the weights, and return them."""
        self.seen.append(weights)
        return weights

    def restricted(self):
        """Return this object itself."""
        return self


class By(Opening):
    """A replacement for noise that applies a function to the weights."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *private):
        """Return the result of the function."""
        return self.function(*private)


def text_of(proof, epsilon=1.0, delta=0.5):
    """Return an unchecked certificate."""
    return Certificate(Claim(epsilon, delta), proof).to_json()


def exact_counts(corpus, release, limits):
    """Return the exact weights to which counts add noise, in the order of the release."""
    gate = counts.CountsGate(text_of(CountsProof((Counted(tuple(limits), 1.0),), 0.0)), Secret.from_seed(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "CellNoise", lambda *given: Exact())
        gate.open(corpus, listed_grams(release, len(sizes_of(release))))
        every = [gate.counted() for _ in range(len(sizes_of(release)))]
        return np.concatenate([np.empty(0, np.int64), *every])


def exact_users(corpus, release):
    """Return the exact weights to which a ranking adds noise, in the order of the release."""
    lists, noise = list(listed_grams(release, len(sizes_of(release)))), Exact()
    gate = counts.PicksGate(text_of(PicksProof(0, len(release), 1.0)), Secret.from_seed(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counts, "GumbelNoise", lambda *given: noise)
        gate.first(corpus, lists, len(lists))
    pairs = zip(noise.seen, lists, strict=True)
    return np.concatenate([np.empty(0, np.int64), *(seen[listed.ranks] for seen, listed in pairs)])


def votes_gate(rules, secret):
    """Return a gate with unchecked rules."""
    from voxpop.privacy.gate.votes import VotesGate
    from voxpop.privacy.passes import VotesProof

    ballot = rules.ballot
    numbers = ballot.rate, ballot.again, ballot.further, ballot.theta, rules.rounds, rules.words
    return VotesGate(text_of(VotesProof(*numbers)), secret)


def released_known(rounds, square, corpus, candidates, secret):
    """Return the candidates released from a public list in two parts, under a certificate with the given mu^2."""
    from voxpop.privacy.gate.rounds import AdaptiveGate
    from voxpop.privacy.passes import AdaptiveProof, Choice, Later, Slack
    from voxpop.reading.arrow import text_buffers

    later = Later(2 * square, "parts", 0, joining=square)
    proof = AdaptiveProof((), Choice((64,), 1.0, 1.0, 0.5), None, later, Slack(100, rounds.pool, 100))
    gate, half = AdaptiveGate(text_of(proof), secret), len(candidates) // 2
    gate._ran.add("released")
    parts = iter([candidates.slice(0, half), candidates.slice(half)])
    return gate.known(corpus, rounds.stated(), parts, text_buffers)


def paths_gate(limits, sequences, secret, tree="contexts", usual=None):
    """Return the gate of a tree that is opened on concatenated sequences.

    If a usual length is given, released lengths determine the length of sequences.
    """
    from types import SimpleNamespace

    from voxpop.engine.local.tree_walk import MemoryTreeWalk
    from voxpop.mechanisms.sequences.constants import LEAST_COUNTED, PER_NOISE
    from voxpop.privacy.gate.trees import PathsGate
    from voxpop.privacy.passes import PathsProof

    rule = (LEAST_COUNTED, PER_NOISE, usual) if tree == "contexts" else ()
    proof = PathsProof(tree, limits.epsilon, limits.alphabet, limits.max_length, limits.max_gram, None, *rule)
    gate = PathsGate(text_of(proof), secret)
    walk = MemoryTreeWalk(np.asarray(sequences, np.int32), limits.alphabet, limits.max_length)
    gate.open(SimpleNamespace(tree_walk=lambda *_: walk), tuple(map(str, range(limits.alphabet))))
    return gate
