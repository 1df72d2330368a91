"""Deliberately broken variants ("mutants") that the audit must detect, each with probability above 0.999.

Each test computes this probability from the probabilities of the mutant, and then runs the audit. Each run of a case
gives a false alarm with probability at most 1e-9 for a bound and 1e-9 for a deviation.
"""

from dataclasses import replace
from math import exp

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy.special import ndtr
from scipy.stats import binom

import voxpop as vp
from audits.contexts_cases import (
    OTHERS,
    SYMBOLS,
    no_end,
    one_level_of_contexts,
    profile,
    profile_chance,
    rates,
    smallest_chance,
)
from audits.engines import within_limit
from audits.hitters_cases import near as hitters_near
from audits.ngrams_cases import ngrams_cases
from audits.sequences_cases import one_level
from audits.tails import users_bound
from audits.union_cases import BUDGET, EXCESS, LIMIT, Event, alone, near
from support.look import read_engine
from support.power import surely_refuted, surely_strays
from support.twins import passed_off
from voxpop.engine.local import corpus as corpus_module
from voxpop.engine.local import tree_walk as counting
from voxpop.engine.local import weigh
from voxpop.engine.local import weigh as bound
from voxpop.mechanisms.heavy_hitters import protocol as simulation
from voxpop.mechanisms.heavy_hitters import releasing as hitters_releasing
from voxpop.privacy import path_budget as paths
from voxpop.privacy import secret as secret_module
from voxpop.privacy.decisions import SelectionRule, ThresholdRule
from voxpop.privacy.gate import rounds as running
from voxpop.privacy.gate import simulating as selecting
from voxpop.privacy.gate import walks as voting
from voxpop.privacy.path_budget import PathBudget
from voxpop.privacy.trie.ballot import Ballot, discovery_rate
from voxpop.privacy.weightings import rule as rules_module
from voxpop.testing.auditing import ERROR, TrialCounts, delta_shown, examine
from voxpop.testing.cases import bound_of_pair, ngrams

pytestmark = pytest.mark.jit
TRIALS = 100_000
UNION = vp.papers.SetUnion(LIMIT, "policy-gaussian", 5.0, "joint")


def any_of(count, weight, plan):
    """Return the probability that at least one of `count` items of this weight is released."""
    return 1 - ndtr((plan.threshold - weight) / plan.scale) ** count


def assert_refuted(case, joined, without, trials=TRIALS):
    """Check that the probability of missing the mutant is below 1 in 1000, and that the audit refutes the mutant."""
    n = -(-int(trials * case.share) // case.copies) * case.copies
    assert surely_refuted(joined, without, n, case.budget.epsilon, case.budget.delta)
    finding = examine(case, trials)
    assert finding.refuted, finding
    assert finding.off_plan


def test_halved_noise_is_detected(monkeypatch):
    """In the mutant, one more user has twice the effect if the weight is near the threshold."""
    plan = UNION.plan(BUDGET)
    others = int(plan.threshold)
    chances = [float(ndtr((k - plan.threshold) / plan.scale)) for k in (others + 1, others)]
    case = Event(plan, 1, 1).case("near", [(0,)] * (others + 1), [(0,)] * others, chances)
    assert examine(case, TRIALS).passed
    real = running.threshold_rule

    def quiet(first):
        rule = real(first)
        return ThresholdRule(rule.noise, rule.scale / 2, rule.threshold_units, rule.unit)

    monkeypatch.setattr(running, "threshold_rule", quiet)
    assert_refuted(case, *(float(ndtr((k - plan.threshold) / plan.scale * 2)) for k in (others + 1, others)))


def test_an_ignored_limit_is_detected(monkeypatch):
    """The mutant counts all items of a user who has eight times as many items as the limit."""
    plan = UNION.plan(BUDGET)
    held = EXCESS * LIMIT
    real = bound.cut_to_limit
    monkeypatch.setattr(bound, "cut_to_limit", lambda *given: given[1:3])
    assert real is not bound.cut_to_limit
    assert_refuted(alone(plan, held, "over", most_copies=25_000), any_of(held, held**-0.5, plan), 0.0, trials=25_000)


def test_unbounded_candidates_are_detected(monkeypatch):
    """The mutant adds noise to the user's items beyond the limit, with weight 0, like the published code of GW."""
    plan = UNION.plan(BUDGET)
    held = EXCESS * LIMIT
    real = weigh.weigh

    def asking_all(holdings, *others):
        histogram = real(holdings, *others)
        ids = np.unique(holdings.ids[holdings.ids >= 0]).astype(np.int64)
        weights = np.zeros(ids.size, np.int64)
        weights[np.searchsorted(ids, histogram._ids)] = histogram._weights
        return type(histogram)(ids, weights, holdings.words.take(pa.array(ids)))

    monkeypatch.setattr(corpus_module, "weigh", asking_all)
    counted, rest = any_of(LIMIT, LIMIT**-0.5, plan), any_of(held - LIMIT, 0.0, plan)
    case = alone(plan, held, "over", most_copies=25_000)
    assert_refuted(case, 1 - (1 - counted) * (1 - rest), 0.0, trials=25_000)


def test_redrawn_noise_is_detected(monkeypatch):
    """The mutant draws noise twice and releases the items of both draws."""
    plan = UNION.plan(BUDGET)
    real = running._chosen

    def twice(weights, rule, secret, pass_name):
        both = [real(weights, rule, secret, f"{pass_name}/{turn}") for turn in (1, 2)]
        return pc.unique(pa.concat_arrays(both)).sort()

    monkeypatch.setattr(running, "_chosen", twice)
    once = any_of(LIMIT, LIMIT**-0.5, plan)
    assert_refuted(alone(plan, LIMIT, "alone"), 1 - (1 - once) ** 2, 0.0)


def test_a_fixed_seed_is_detected(monkeypatch):
    """The secret is the same in both releases, so they agree in all of the at least 30,000 copies.

    Two correct releases agree with probability below 1e-300, but releases of the mutant always agree.
    """
    case = near(UNION.plan(BUDGET))
    trials = 2 * case.copies
    assert not examine(case, trials).repeated
    fixed = secret_module.Secret.from_seed(0)
    monkeypatch.setattr(secret_module.Secret, "fresh", classmethod(lambda cls: fixed))
    finding = examine(case, trials)
    assert finding.repeated
    assert finding.off_plan


def test_a_threshold_off_by_one_user_is_detected():
    """In the mutant, optimal selection counts one user too many."""
    plan = vp.papers.OptimalSelection().plan(BUDGET)
    case = alone(plan, 1, "alone")
    slack = BUDGET.delta
    with pytest.MonkeyPatch.context() as patch:
        real = SelectionRule.probability
        patch.setattr(SelectionRule, "probability", lambda self, weights: real(self, weights + self.unit_weight))
        # In this test, all decisions are made in floating-point numbers.
        patch.setattr(SelectionRule, "exact", lambda self, weight: 1 / 0)
        assert_refuted(case, exp(1) * slack + slack, 0.0)


def test_a_threshold_off_by_one_grid_step_is_detected(monkeypatch):
    """Weights are multiples of one eighth, and the threshold of the mutant is lower than planned by one eighth."""
    monkeypatch.setattr(rules_module, "ADDITIVE_BITS", 3)
    plan = vp.papers.SetUnion(LIMIT, "weighted", accounting="joint").plan(BUDGET)
    assert plan.threshold * 8 == round(plan.threshold * 8)
    case, trials = alone(plan, LIMIT, "alone"), 200_000
    assert examine(case, trials).passed
    real = running.threshold_rule

    def low(first):
        rule = real(first)
        return replace(rule, threshold_units=rule.threshold_units - 1)

    monkeypatch.setattr(running, "threshold_rule", low)
    lower = passed_off(plan, passes=(replace(plan.last, threshold=plan.threshold - 1 / 8),))
    assert_refuted_or_off_plan(case, any_of(LIMIT, LIMIT**-0.5, lower), 0.0, trials)


def assert_refuted_or_off_plan(case, joined, without, trials):
    """Check that the audit detects the mutant by refuting the claim or by reporting a deviation from the plan."""
    n = -(-int(trials * case.share) // case.copies) * case.copies
    refuted = surely_refuted(joined, without, n, case.budget.epsilon, case.budget.delta)
    assert refuted or surely_strays(case.exact[0], joined, n) or surely_strays(case.exact[1], without, n)
    finding = examine(case, trials)
    assert finding.refuted if refuted else finding.off_plan


def test_a_server_that_needs_one_vote_fewer_is_detected(monkeypatch):
    """In the mutant, the server of heavy hitters extends prefixes with theta - 1 votes."""
    plan = vp.HeavyHitters(max_length=2, unit=2, alphabet="tokens").plan(BUDGET)
    case = hitters_near(plan, most_copies=1_000)
    real = hitters_releasing.grown_trie

    def content(spelling, electorate, rules, gate):
        gate.proof = replace(gate.proof, theta=gate.proof.theta - 1)
        return real(spelling, electorate, rules, gate)

    monkeypatch.setattr(hitters_releasing, "grown_trie", content)
    others = int(case.name.split()[1])
    loose = replace(plan.rules.ballot, theta=plan.theta - 1)  # theta votes of a user have the effect of theta - 1
    chances = [discovery_rate(holders, loose, 1) for holders in (others + 1, others)]
    assert_refuted_or_off_plan(case, *chances, 20_000)


@pytest.mark.slow  # 100,000 trials of n-grams
@pytest.mark.parametrize("factor", [0.5, 1e-6])
def test_spurious_grams_with_a_wrong_probability_are_detected(factor, monkeypatch):
    """In the mutants, grams without weight are released half as often as noise would release them, or almost never."""
    case = next(case for case in ngrams_cases() if case.name.startswith("empty"))
    real = selecting.spurious_hits
    monkeypatch.setattr(
        selecting, "spurious_hits", lambda candidates, chance, *rest: real(candidates, chance * factor, *rest)
    )
    # Probabilities of 0.065 and 0.010 surely refute the claim with at least 96,000 trials.
    assert_refuted(case, case.exact[0], case.exact[1] * factor)


def test_votes_with_half_the_noise_are_detected(monkeypatch):
    """In the mutant, the votes of default n-grams have half the noise that users paid for."""
    case = ngrams(BUDGET)
    plan, others = case.joined.args[0], int(case.name.split()[1])
    real, ran = voting.NoisyLevels, case.joined.args[3].args[0]

    def quiet(rules, *others):
        halved = [replace(rule, scale=rule.scale / 2) if hasattr(rule, "scale") else rule for rule in rules]
        return real(tuple(halved), *others)

    monkeypatch.setattr(selecting, "NoisyLevels", quiet)
    monkeypatch.setattr(voting, "NoisyLevels", quiet)
    bound = bound_of_pair(plan)
    twin = [float(ndtr(2 * (holders * bound - ran.threshold) / ran.sigma)) for holders in (others + 1, others)]
    assert_refuted(case, *twin, trials=80_000)


def test_users_who_are_weighed_twice_from_work_files_are_detected(monkeypatch):
    """In the mutant, the order of users within a memory limit contains every user twice."""
    plan = UNION.plan(BUDGET)
    case, trials = alone(plan, LIMIT, "alone", within_limit, 8_000), 40_000
    assert examine(case, trials).passed
    real = corpus_module.in_weighing_order

    def twice(*given):
        tokens, starts, keys = map(np.asarray, real(*given))
        return np.tile(tokens, 2), np.concatenate([starts, starts[1:] + starts[-1]]), np.tile(keys, 2)

    monkeypatch.setattr(corpus_module, "in_weighing_order", twice)
    assert_refuted(case, any_of(LIMIT, 2 * LIMIT**-0.5, plan), 0.0, trials)


def test_half_the_noise_scale_in_grams_is_detected(monkeypatch):
    """In the mutant, the noise of the grams of the paper (CAC12) is calibrated to half the sensitivity."""
    case = one_level(vp.Budget(1.0))
    real = paths.laplace_noise
    monkeypatch.setattr(paths, "laplace_noise", lambda rate, *others: real(2 * rate, *others))
    tail = [exp(-2 * m / 3) / (1 + exp(-2 / 3)) for m in (1, 3)]
    assert_refuted(case, 1 - tail[0], tail[1], trials=20_000)


def test_half_the_noise_scale_in_contexts_is_detected(monkeypatch):
    """In the mutant, the noise of the counts after contexts is calibrated to half the sensitivity."""
    case = one_level_of_contexts(vp.Budget(1.0))
    real = paths.laplace_noise
    monkeypatch.setattr(paths, "laplace_noise", lambda rate, *others: real(2 * rate, *others))
    scale = 1 / rates(vp.Budget(1.0), OTHERS * SYMBOLS)[2]
    assert_refuted(case, users_bound(0, scale), users_bound(2, scale), trials=20_000)


@pytest.mark.parametrize("given", [{}, {"max_length": None}], ids=["length", "decided"])
def test_noise_for_too_few_steps_is_detected(monkeypatch, given):
    """The mutant counts all steps of a sequence, but the noise is calibrated to the first two.

    If released lengths determine the length of sequences, the canary also has an end mark, which no event uses.
    """
    case = one_level_of_contexts(vp.Budget(1.0), **given)
    monkeypatch.setattr(counting.MemoryTreeWalk, "count_first", lambda self, steps: None)
    scale = 2 / rates(vp.Budget(1.0), OTHERS * SYMBOLS)[2]
    assert_refuted(case, users_bound(-1, scale), users_bound(2, scale), trials=35_000)


@pytest.mark.slow  # one release is one trial
def test_an_end_mark_after_whole_sequences_is_detected(monkeypatch):
    """In the mutant, a sequence with the largest number of symbols also has an end mark, which is one step too many."""
    case = no_end(vp.Budget(1.0))

    def open_everything(symbols, end, most, nodes):
        nodes[:] = 0

    monkeypatch.setattr(counting, "open_steps", open_everything)
    chances = (smallest_chance(vp.Budget(1.0), (2, 2), least) for least in ((0, 0), (1, 1)))
    assert_refuted(case, *chances, trials=120_000)


@pytest.mark.slow  # one release is one trial
def test_repeated_symbols_with_the_noise_of_distinct_ones_are_detected(monkeypatch):
    """A user has one distinct symbol from an alphabet of one symbol, but repeats it ten times.

    With 150 other users, the numbers of distinct and repeated symbols get six fortieths of the remaining epsilon, so
    the effect is large. With thousands of users, they get one fortieth.
    """
    case, real = profile(vp.Budget(1.0), 150), PathBudget.of_users

    def of_users(self, bins, sensitivity):
        return real(self, bins, min(sensitivity, self.limits.alphabet))

    monkeypatch.setattr(PathBudget, "of_users", of_users)
    chances = (profile_chance(vp.Budget(1.0), least, 1, 150) for least in ((0, 0, 0, 0), (1, 1, 9, 10)))
    assert_refuted(case, *chances, trials=200_000)


def items_of(words):
    """Return an engine with users who have one item each."""
    table = pl.DataFrame({"who": range(len(words)), "what": words}, schema_overrides={"what": pl.String})
    return read_engine(table, user="who", items="what")


def test_fixed_batches_are_detected(monkeypatch):
    """Three users have a, and three users have b. If a seventh user has a, some prefix always receives enough votes.

    Each batch consists of three users, and a prefix needs two votes. The broken variant draws batches of a fixed size,
    as in the TrieHH paper. One release is one trial here, because a batch is drawn from all users.
    """

    def batch(self, rounds, rules, secret):
        draws = secret.draws(f"sample/round {rounds + 1}", self.keys, self.twins)[:, 0]
        size = int(rules.ballot.rate * len(draws))
        return np.sort(np.argsort(draws)[:size]), np.ones(size, np.int64)

    monkeypatch.setattr(simulation.Electorate, "sampled", batch)
    plan = vp.papers.TrieHH(max_length=2, unit=2).plan(BUDGET)
    plan = passed_off(plan, rules=replace(plan.rules, ballot=Ballot(3 / 7 + 1e-9, 2)))
    held = ["a"] * 3 + ["b"] * 3
    runs = 600
    joined, without = (items_of([*held, *seventh]) for seventh in (["a"], ["too long"]))
    empty = [sum(not len(plan.release(corpus)) for _ in range(runs)) for corpus in (joined, without)]
    assert empty[0] == 0
    assert binom.ppf(5e-10, runs, 9 / 35) <= empty[1] <= binom.isf(5e-10, runs, 9 / 35)
    assert delta_shown(TrialCounts(*empty, runs), BUDGET.epsilon) > BUDGET.delta


def test_the_probability_of_a_miss_is_computed():
    """With a hundredth of the trials, the audit could miss the same mutant, so `surely_refuted` returns False."""
    plan = UNION.plan(BUDGET)
    once = any_of(LIMIT, LIMIT**-0.5, plan)
    assert surely_refuted(1 - (1 - once) ** 2, 0.0, TRIALS, 1.0, 0.02, ERROR)
    assert not surely_refuted(1 - (1 - once) ** 2, 0.0, TRIALS // 100, 1.0, 0.02, ERROR)
