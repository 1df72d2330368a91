"""Tests of the privacy loss of one user, with an exact search and an audit of outputs, which detect broken variants."""

import sys
from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import betaincinv

from searches.sequence_loss import loss_along, pair_loss, search_sequence_loss
from support.exact import paths_gate
from support.lengths import at_length
from voxpop.engine.local import tree_walk as counting
from voxpop.mechanisms.sequences.constants import LEAST_COUNTED, PER_NOISE
from voxpop.mechanisms.sequences.profile import length_classes
from voxpop.mechanisms.sequences.releasing import split_contexts
from voxpop.papers import ngram_model
from voxpop.papers.ngram_model import explore
from voxpop.privacy import path_budget
from voxpop.privacy.gate import trees
from voxpop.privacy.path_budget import Limits
from voxpop.privacy.sampling import laplace_noise
from voxpop.privacy.secret import Secret

ALARM = 1e-10  # The probability that one bound of the audit is wrong.
RUNS = 2500  # The probability of a wrong result in the tests below is below 1e-8. With 1,500 runs, it was 1e-4.


def count_the_end_at_the_root(monkeypatch):
    """Plant the fault that the end mark becomes a child of the root."""
    monkeypatch.setattr(counting, "_opened", lambda symbols, end: np.zeros(symbols.size, np.int32))
    for module in (ngram_model, trees):
        monkeypatch.setattr(module, "_bins", lambda width, at_root: width)


@pytest.mark.jit
def test_no_pair_of_neighbours_costs_more_than_epsilon():
    """For every tree in a random search, the exact loss is at most the whole budget, and the worst tree attains it."""
    worst = search_sequence_loss(pairs=500, seed=5)
    assert worst.loss == 1


@pytest.mark.slow
def test_no_pair_of_a_long_search_costs_more_than_epsilon():
    """This search covers many more pairs than the short search (12,000 in `make trust`)."""
    assert search_sequence_loss(pairs=at_length(12_000, 4_000), seed=6).loss == 1


@pytest.mark.slow  # The test checks the search, not the package.
@pytest.mark.jit
def test_the_search_detects_an_end_mark_counted_at_the_root(monkeypatch):
    """If the end mark is counted at the root, one user changes max_length + 1 counts, and the loss exceeds 1."""
    count_the_end_at_the_root(monkeypatch)
    worst = search_sequence_loss(pairs=300, seed=5)
    assert worst.loss > 1
    limits = Limits(Fraction(1), alphabet=2, max_length=3, max_gram=4)
    assert pair_loss(limits, [[0, 0, 0], [1]], 0, Secret.from_seed(0), grams=True) >= Fraction(1, 4) * Fraction(4, 3)


def test_the_search_detects_sequences_that_are_one_symbol_too_long():
    """A user with max_length + 1 symbols costs more than epsilon, so truncation is necessary."""
    limits = Limits(Fraction(1), alphabet=1, max_length=3, max_gram=1)
    assert pair_loss(limits, [[0] * 3, [0]], 0, Secret.from_seed(0), grams=True) == 1
    late = Limits(Fraction(1), alphabet=1, max_length=4, max_gram=1)
    assert pair_loss(late, [[0] * 4, [0]], 0, Secret.from_seed(0), grams=True) * Fraction(4, 3) > 1


def epsilon_shown(event, epsilon, users, extra, limits):
    """Return a lower bound on the loss divided by epsilon, from the frequency of an event with and without a user.

    The bound is wrong with probability 2e-10.
    """
    with_user = sum(event(released(limits, [*users, extra])) for _ in range(RUNS))
    without = sum(event(released(limits, users)) for _ in range(RUNS))
    lower = betaincinv(with_user, RUNS - with_user + 1, ALARM) if with_user else 0.0
    upper = betaincinv(without + 1, RUNS - without, 1 - ALARM) if without < RUNS else 1.0
    return log(max(lower, 1e-300) / upper) / epsilon


def released(limits, users):
    flat = [symbol for user in users for symbol in [*user, limits.alphabet]]
    tree = explore(paths_gate(limits, flat, Secret.fresh(), "grams"))
    return {symbol: count for symbol, count in enumerate(tree.counts[0].tolist()) if count >= 0}


LIMITS = Limits(Fraction(1), alphabet=1, max_length=1, max_gram=1)


def all_present(counts):
    return all(count >= 1 for count in counts.values())


def test_the_audit_finds_no_violation():
    """For the most revealing event of the smallest case, the audit shows between half and all of epsilon."""
    assert 0.5 < epsilon_shown(all_present, 1.0, [], [0], LIMITS) <= 1.0


@pytest.mark.slow
@pytest.mark.jit
def test_the_audit_detects_an_end_mark_counted_at_the_root(monkeypatch):
    """The broken variant shows 1.45 times epsilon, with a standard deviation of 0.06."""
    count_the_end_at_the_root(monkeypatch)
    assert epsilon_shown(all_present, 1.0, [], [0], LIMITS) > 1.0


@pytest.mark.slow
def test_the_audit_detects_noise_with_half_the_scale(monkeypatch):
    """Noise for half the sensitivity shows 1.6 times epsilon, with a standard deviation of 0.05."""
    monkeypatch.setattr(path_budget, "laplace_noise", lambda rate, *others: laplace_noise(2 * rate, *others))
    assert epsilon_shown(all_present, 1.0, [], [0], LIMITS) > 1.0


class Forgetful(path_budget.PathBudget):
    """A budget with the fault that every node spends a part of the whole budget and ignores the spend of its path."""

    def spend(self, above, part):
        self.shares.append(path_budget.Share(Fraction(0), part))
        return len(self.shares) - 1


@pytest.mark.slow  # The test checks the search, not the package.
@pytest.mark.jit
def test_the_search_detects_shares_that_ignore_earlier_payments(monkeypatch):
    """If every level spent a share of the whole budget instead of the remainder, long paths would exceed epsilon."""
    monkeypatch.setattr(trees, "PathBudget", Forgetful)
    assert search_sequence_loss(pairs=300, seed=5).loss > 1


def whole_sequences_have_an_end(monkeypatch):
    """Plant the fault that the end mark after max_length symbols counts as a step."""

    def open_everything(symbols, end, most, nodes):
        nodes[:] = 0

    monkeypatch.setattr(counting, "open_steps", open_everything)


CONTEXTS = Limits(Fraction(1), alphabet=1, max_length=1, max_gram=1)


def test_the_search_reaches_epsilon_with_contexts():
    """A user with max_length symbols and as many distinct symbols as possible costs exactly the whole budget."""
    limits = Limits(Fraction(60), alphabet=2, max_length=3, max_gram=3)
    assert pair_loss(limits, [[0, 1, 0], [0, 0, 0], [1], [0, 1]], 0, Secret.from_seed(0)) == 1


@pytest.mark.slow  # The test checks the search, not the package.
@pytest.mark.jit
def test_the_search_detects_an_end_mark_after_sequences_of_full_length(monkeypatch):
    """With this fault, a sequence of full length has max_length + 1 steps, and the loss exceeds 1."""
    whole_sequences_have_an_end(monkeypatch)
    assert search_sequence_loss(pairs=300, seed=5).loss > 1
    limits = Limits(Fraction(60), alphabet=2, max_length=3, max_gram=3)
    # There are so many sequences of full length that all steps are counted.
    assert pair_loss(limits, [[0, 1, 0], *[[0, 0, 0]] * 40], 0, Secret.from_seed(0)) > Fraction(5, 4)


@pytest.mark.slow  # The test checks the search, not the package.
def test_the_search_detects_contexts_that_spend_from_the_whole_budget(monkeypatch):
    """If every context spent part of the whole budget instead of the remainder, long contexts would exceed epsilon."""
    monkeypatch.setattr(trees, "PathBudget", Forgetful)
    limits = Limits(Fraction(60), alphabet=2, max_length=3, max_gram=3)
    assert pair_loss(limits, [[0, 1, 0], [0, 0, 0], [1], [0, 1]], 0, Secret.from_seed(0)) > 1


LONG_AMONG_SHORT = [[0, 1, 0, 1, 0, 1], *[[0]] * 60]
"""Sequences of at most six steps. The tree counts two steps of each."""
SIX = Limits(Fraction(60), alphabet=2, max_length=6, max_gram=3)


def test_a_long_sequence_among_short_ones_also_costs_epsilon():
    """All counted steps of the user together cost exactly epsilon, although the noise covers fewer steps."""
    assert pair_loss(SIX, LONG_AMONG_SHORT, 0, Secret.from_seed(0)) == 1


@pytest.mark.slow  # The test checks the search, not the package.
@pytest.mark.jit
@pytest.mark.parametrize("further", [1, 9])
def test_the_search_detects_more_steps_than_the_noise_covers(monkeypatch, further):
    """If one more step than the sensitivity were counted, or all steps, the loss would exceed 1."""
    real = counting.MemoryTreeWalk.count_first
    monkeypatch.setattr(counting.MemoryTreeWalk, "count_first", lambda self, steps: real(self, steps + further))
    assert pair_loss(SIX, LONG_AMONG_SHORT, 0, Secret.from_seed(0)) > Fraction(6, 5)
    assert search_sequence_loss(pairs=300, seed=5).loss > 1


@pytest.mark.slow  # The test checks the search, not the package.
@pytest.mark.jit
def test_the_search_detects_a_number_of_steps_that_depends_on_private_lengths(monkeypatch):
    """If exact lengths determined the number of counted steps, the noise would reveal the presence of one user."""
    real, rule, true = counting.MemoryTreeWalk.count_lengths, path_budget.StepsRule.steps, []

    def count_lengths(self, first):
        classes, counts = real(self, first)
        true[:] = [np.zeros(first.size, np.int64)]
        true[0][classes] = counts
        return classes, counts

    monkeypatch.setattr(counting.MemoryTreeWalk, "count_lengths", count_lengths)
    monkeypatch.setattr(
        path_budget.StepsRule, "steps", lambda self, limits, first, _: rule(self, limits, first, true[0][: first.size])
    )
    assert search_sequence_loss(pairs=300, seed=5).loss > 1


@given(
    st.integers(1, 30),
    st.lists(st.integers(-30, 300), min_size=12, max_size=12),
    st.integers(1, 40),
    st.fractions(Fraction(1, 100), 60),
)
def test_the_number_of_steps_equals_the_reference_implementation(most, lengths, alphabet, epsilon):
    """For any released numbers, the rule chooses the number of steps with the lowest cost."""
    first = length_classes(most)
    released = np.array(lengths[: first.size])
    limits = Limits(epsilon, alphabet, most, 3)
    found = path_budget.StepsRule(LEAST_COUNTED, PER_NOISE).steps(limits, first, released)
    assert found == naive_steps(most, first.tolist(), released.tolist(), alphabet, epsilon)


def naive_steps(most, first, released, alphabet, epsilon):
    """Return the number of steps with the lowest cost, computed by loops over lengths."""

    def counted(steps):
        total = Fraction(0)
        for least, further, number in zip(first, [*first[1:], None], released, strict=True):
            mean = most if further is None else Fraction(least + further - 1, 2) + 1
            total += number * min(mean, steps)
        return total

    if counted(most) <= 0:
        return most
    prices = {}
    for steps in range(1, most + 1):
        share = counted(steps) / counted(most)
        if share >= Fraction(4, 5):
            noise = steps * (alphabet + 1) / (epsilon * counted(steps))
            prices[steps] = 15 * float(noise) ** 0.5 + float(1 - share)
    return min(prices, key=prices.get)


@given(
    st.integers(1, 40),
    st.lists(st.integers(-30, 300), min_size=12, max_size=12),
    st.integers(1, 40),
    st.fractions(Fraction(1, 100), 2),
)
def test_the_length_of_sequences_equals_the_reference_implementation(most, lengths, usual, rate):
    """For any released numbers, drawn sequences include all lengths that noise cannot explain."""
    first = length_classes(most)
    released = np.array(lengths[: first.size])
    rule = path_budget.StepsRule(LEAST_COUNTED, PER_NOISE, min(usual, most))
    found = rule.classes(released, first, rate).tolist()
    assert found == naive_classes(first.tolist(), released.tolist(), min(usual, most), rate)


def naive_classes(first, released, usual, rate):
    """Return the number of sequences in each class up to the longest, computed by loops."""
    clear = [place for place in range(len(first)) if released[place] * rate >= 4]
    common = [place for place in range(len(first)) if first[place] <= usual]
    # The class after the last clear class, or after the usual length if no class is clear.
    empty = clear[-1] + 1 if clear else len(common)
    kept = [each if place < empty else 0 for place, each in enumerate(released)]
    longest = 0
    for place in range(len(first)):
        reached = sum(kept[place:])
        if place <= empty and (place in common or 5 * reached >= sum(kept)):
            longest = place
    if longest == empty:
        return released[: longest + 1]
    return [*kept[:longest], sum(kept[longest:])]


FOUR = Limits(Fraction(40), alphabet=1, max_length=4, max_gram=2)


@pytest.mark.jit
@pytest.mark.parametrize("extra", [1, 4, *(pytest.param(each, marks=pytest.mark.slow) for each in (2, 3))])
def test_no_released_lengths_in_a_small_case_cost_more_than_epsilon(extra):
    """For all released lengths that the rules distinguish, the loss is at most epsilon.

    The case has four classes of length. For each class, noise can explain some of the tested numbers but not others.
    """
    users, visited, worst = [[0], [0, 0], [0] * extra], set(), Fraction(0)
    for lengths in product((-3, 0, 1, 4, 40), repeat=4):
        loss, longest, steps = loss_along(FOUR, users, 2, lengths, Secret.from_seed(0), usual=2)
        assert loss <= 1, lengths
        visited.add((longest, steps))
        worst = max(worst, loss)
    # A length of 1 is never chosen. The class after a clear class is included as a whole. If no class is clear, the
    # usual length, which is 2, determines this class.
    assert visited == {(2, 2), (3, 2), (3, 3), (4, 4)}
    assert worst == 1


@pytest.mark.slow  # The test checks the search, not the package.
@pytest.mark.jit
def test_the_search_detects_a_length_that_depends_on_private_lengths(monkeypatch):
    """If exact lengths determined the length of sequences, one user could change the noise of all later counts."""
    real, rule, true = counting.MemoryTreeWalk.count_lengths, path_budget.StepsRule.classes, []

    def count_lengths(self, first):
        classes, counts = real(self, first)
        true[:] = [np.zeros(first.size, np.int64)]
        true[0][classes] = counts
        return classes, counts

    def classes(self, lengths, first, rate):
        chosen = rule(self, true[0], first, rate)
        return lengths[: chosen.size]

    monkeypatch.setattr(counting.MemoryTreeWalk, "count_lengths", count_lengths)
    monkeypatch.setattr(path_budget.StepsRule, "classes", classes)
    assert search_sequence_loss(pairs=300, seed=5).loss > 1


@pytest.mark.slow  # The test checks the search, not the package.
@pytest.mark.jit
def test_the_search_detects_steps_after_the_chosen_length(monkeypatch):
    """In the broken variant, sequences are not cut at the chosen length, although the noise is for this length."""
    limits, users = Limits(Fraction(60), 1, 6, 1), [[0] * 6, *[[0]] * 60]
    assert pair_loss(limits, users, 0, Secret.from_seed(0), usual=1) <= 1
    monkeypatch.setattr(counting.MemoryTreeWalk, "count_first", lambda self, steps: None)
    assert pair_loss(limits, users, 0, Secret.from_seed(0), usual=1) > Fraction(6, 5)


@pytest.mark.slow  # The test checks the search, not the package.
@pytest.mark.jit
def test_the_search_detects_a_sequence_in_several_classes_of_length(monkeypatch):
    """If a sequence were counted in all classes up to its length, lengths would cost more than their share."""

    def count_lengths(self, first):
        classes, counts = real(self, first)
        keys = np.arange(classes.max(initial=-1) + 1)
        return keys, np.array([counts[classes >= key].sum() for key in keys], np.int64)

    real = counting.MemoryTreeWalk.count_lengths
    monkeypatch.setattr(counting.MemoryTreeWalk, "count_lengths", count_lengths)
    assert search_sequence_loss(pairs=300, seed=5).loss > 1


@pytest.mark.slow  # The test checks the search, not the package.
@pytest.mark.jit
def test_the_search_detects_distinct_symbols_with_the_noise_of_one(monkeypatch):
    """If noise covered only one distinct symbol per user, all distinct symbols would cost more than their share."""
    real = path_budget.PathBudget.of_users
    monkeypatch.setattr(path_budget.PathBudget, "of_users", lambda self, bins, _: real(self, bins, 1))
    assert search_sequence_loss(pairs=300, seed=5).loss > 1


@pytest.mark.slow  # The test checks the search, not the package.
@pytest.mark.jit
def test_the_search_detects_repeated_symbols_with_the_noise_of_distinct_ones(monkeypatch):
    """The alphabet bounds the distinct symbols of a user, but a symbol can repeat at each of the first positions."""
    real = path_budget.PathBudget.of_users

    def of_users(self, bins, sensitivity):
        return real(self, bins, min(sensitivity, self.limits.alphabet))

    monkeypatch.setattr(path_budget.PathBudget, "of_users", of_users)
    assert search_sequence_loss(pairs=300, seed=5).loss > 1


@pytest.mark.slow  # The test checks the search, not the package.
@pytest.mark.jit
def test_the_search_detects_statistics_of_too_many_symbols(monkeypatch):
    """If more symbols of a sequence than planned were compared, long sequences would cost more than their share."""
    real = counting.MemoryTreeWalk.count_variety
    more = np.array([2, 0])
    monkeypatch.setattr(counting.MemoryTreeWalk, "count_variety", lambda self, given: real(self, given + more))
    assert search_sequence_loss(pairs=300, seed=5).loss > 1


def steps_of(limits, users):
    flat = [symbol for user in users for symbol in [*user, limits.alphabet]]
    tree, _ = split_contexts(paths_gate(limits, flat, Secret.fresh()))
    return dict(enumerate(tree.counts[0].tolist()))


@pytest.mark.slow
@pytest.mark.jit
def test_the_audit_of_contexts_finds_no_violation(monkeypatch):
    """For the most revealing event of the smallest case, contexts show between half and all of epsilon."""
    monkeypatch.setattr(sys.modules[__name__], "released", steps_of)
    monkeypatch.setattr(sys.modules[__name__], "RUNS", 4000)
    first = lambda counts: counts[0] >= 1  # noqa: E731
    assert 0.5 < epsilon_shown(first, 1.0, [], [0], CONTEXTS) <= 1.0


@pytest.mark.slow
@pytest.mark.jit
def test_the_audit_detects_an_end_mark_after_sequences_of_full_length(monkeypatch):
    """The broken variant reveals both a symbol and an end, and shows 1.71 times epsilon."""
    whole_sequences_have_an_end(monkeypatch)
    monkeypatch.setattr(sys.modules[__name__], "RUNS", 4000)
    monkeypatch.setattr(sys.modules[__name__], "released", steps_of)
    assert epsilon_shown(all_present, 1.0, [], [0], CONTEXTS) > 1.0
