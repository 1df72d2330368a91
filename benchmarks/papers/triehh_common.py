"""Code that the TrieHH benchmarks share, with rules for comparisons and a run without a release."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

import voxpop as vp
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.mechanisms.heavy_hitters.protocol import Electorate, Rules, Spelling, grown_trie, spell
from voxpop.privacy.gate.votes import VotesGate
from voxpop.privacy.passes import Certificate, Claim, VotesProof
from voxpop.privacy.secret import Secret
from voxpop.privacy.trie.calibrate import best_sampling


def exact_rules(budget: vp.Budget, words: str = "one", votes: str = "several", unit: int = 1) -> Rules:
    """Return the rules for ten symbols by exact accounting, for comparisons that `HeavyHitters` does not offer."""
    rounds = -(-10 // unit)
    ballot = best_sampling(budget, rounds, words, votes).ballot
    return Rules(ballot, rounds, unit, 10, words=words)


@dataclass
class FixedBatches:
    """Users from whom each round samples a batch of fixed size, as in the paper. There is no proof of privacy."""

    electorate: Electorate

    def sampled(self, rounds: int, rules: Rules, secret: Secret) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of the users in the batch, with one vote each."""
        draws = secret.draws(f"sample/round {rounds + 1}", self.electorate.keys, self.electorate.twins)
        batch = int(rules.ballot.rate * len(draws))
        return np.sort(np.lexsort((draws[:, 1], draws[:, 0]))[:batch]), np.ones(batch, np.int64)

    def choices(self, *given: object) -> tuple[np.ndarray, np.ndarray]:
        """Return the word of each user, as in rounds of independent samples."""
        return self.electorate.choices(*given)


@dataclass
class Votes:
    """A corpus that is prepared once for many runs."""

    spelling: Spelling
    electorate: Electorate
    rules: Rules

    @staticmethod
    def of(corpus: LocalCorpus, rules: Rules) -> "Votes":
        """Prepare a corpus for some rules."""
        spelling = spell(corpus, rules)
        return Votes(spelling, Electorate.of(spelling, corpus.user_key, rules), rules)

    def found(self, rules: Rules, *, fixed: bool = False) -> np.ndarray:
        """Run once with a fresh secret. The rules may differ in ballot and unit, and batches may have a fixed size."""
        electorate = FixedBatches(self.electorate) if fixed else self.electorate
        trie = grown_trie(self.spelling, electorate, rules, _gate(rules))
        return np.array([self.number["".join(word)] for word in trie.words], np.int64)

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.spelling.vocabulary.to_pylist())}

    def private_frequencies(self) -> np.ndarray:
        """Return the mean share of users' votes that each word would get, which is an exact private number."""
        sizes = np.diff(self.electorate.held_start)
        weights = np.repeat(1 / np.maximum(sizes, 1), sizes)
        counts = np.bincount(self.electorate.held, weights, minlength=self.spelling.sizes.size)
        return counts / sizes.size


def _gate(rules: Rules) -> VotesGate:
    """Return a gate of unchecked rules, which may cost more than any budget."""
    ballot = rules.ballot
    numbers = ballot.rate, ballot.again, ballot.further, ballot.theta, rules.rounds, rules.words
    return VotesGate(Certificate(Claim(1.0, 0.5), VotesProof(*numbers)).to_json(), Secret.fresh())
