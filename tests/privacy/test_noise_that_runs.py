"""Tests that the noise that engines add to private weights has exactly the numbers of the certificate."""

import json
from fractions import Fraction
from math import inf

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from support.exact import paths_gate, text_of, votes_gate
from support.look import read_engine
from voxpop.engine.local import nights, pools, tree_walk, weigh
from voxpop.errors import InternalError
from voxpop.mechanisms.heavy_hitters.protocol import Rules
from voxpop.mechanisms.profile.constants import CELL
from voxpop.mechanisms.profile.constants import COVER_UNIT as SHARES
from voxpop.privacy.certificate import check, score_of
from voxpop.privacy.cumulative import ScoreStep
from voxpop.privacy.decisions import (
    CellNoise,
    GumbelNoise,
    NoisyLevels,
    ReleaseDecisions,
    SelectionRule,
    ThresholdRule,
)
from voxpop.privacy.gate.trees import PathsGate
from voxpop.privacy.gate.walks import later_after
from voxpop.privacy.passes import Certificate, Claim, PathsProof
from voxpop.privacy.path_budget import ContextNoise, Limits
from voxpop.privacy.secret import Secret
from voxpop.privacy.trie.ballot import Ballot
from voxpop.privacy.truncated import KeyNumbers, WholeNoise
from voxpop.privacy.upcrossing import NightReading
from voxpop.privacy.weightings.holders import UNIT

BUDGET = vp.Budget(4, 1e-7)
PHRASES = [" ".join(f"{part}{phrase:02}" for part in "abcd") for phrase in range(40)]


@pytest.fixture(scope="module")
def talk():
    """Return phrases of 1,200 users."""
    table = pl.DataFrame({"who": [row // 4 for row in range(4800)], "what": PHRASES * 120})
    return read_engine(table, user="who", text="what")


@pytest.fixture
def seen(monkeypatch):
    """Return a list of all noise that engines receive, in order, even if no weight remains."""
    found = []

    def note(noise):
        if not any(noise is each for each in found):
            found.append(noise)

    def watch(owner, name, place):
        real = getattr(owner, name)

        def noting(*given):
            note(given[place])
            return real(*given)

        monkeypatch.setattr(owner, name, noting)

    watch(weigh.Histogram, "noisy_levels", 1)
    watch(weigh.Histogram, "measured", 1)
    watch(pools.Pools, "advance", 2)
    watch(tree_walk, "opened", 0)
    watch(nights, "opened", 0)
    return found


def kinds(seen, kind):
    """Return the recorded noise objects of one class."""
    return [each for each in seen if type(each) is kind]


def rule_of(first):
    """Return the rule of a first round in a certificate."""
    return ThresholdRule(first.noise, first.scale, first.threshold, 2.0**-first.bounding.bits)


def assert_rounds(seen, rounds):
    """Compare the noise of the first round and all later rounds with a certificate."""
    (first,) = kinds(seen, ReleaseDecisions)
    assert first.rule == rule_of(rounds.first)
    assert_later(seen, rounds)


def assert_later(seen, rounds):
    """Compare the noise and thresholds of later rounds with a certificate."""
    steps, spreads = kinds(seen, ScoreStep), score_of(rounds).spreads.tolist()
    assert len(steps) == len(rounds.later) == len({each.purpose for each in steps})
    for step, each, spread in zip(steps, rounds.later, spreads, strict=True):
        numbers = each.sigma, 1 << each.bounding.bits, each.cell, each.part, each.threshold * spread
        assert (step.sigma, step.unit, step.cell, step.part, step.threshold) == numbers
        assert step.floor == (-inf if each.drop is None else each.drop * spread)


def test_adaptive_rounds_run_with_the_planned_noise(talk, seen):
    """The choice of the limit, the first round and all later rounds have the planned noise."""
    certificate = vp.Items().release(talk, BUDGET, seed=1).plan.certificate
    (classes,) = kinds(seen, CellNoise)
    assert (classes.sigma, classes.unit, classes.cell) == (certificate.proof.choice.sigma, 1, 1)
    assert_rounds(seen, certificate.proof.rounds)


def test_single_passes_run_with_the_planned_noise(talk, seen):
    """Each mechanism has one pass, with the scale and the threshold of the certificate."""
    for weighting in ("policy-gaussian", "policy-laplace", "weighted", "count-laplace"):
        union = vp.papers.SetUnion(20, weighting, accounting="joint")
        certificate = union.release(talk, BUDGET, seed=1).plan.certificate
        assert seen[-1].rule == rule_of(certificate.proof.first)
    certificate = vp.papers.OptimalSelection(min_users=7).release(talk, BUDGET, seed=1).plan.certificate
    assert seen[-1].rule == SelectionRule(4.0, certificate.proof.delta, unit_weight=1, few=certificate.proof.few)
    assert certificate.proof.few == 6


def test_n_grams_run_with_the_planned_noise(talk, seen):
    """Every later pass runs with the noise in the transcript, and the charge of the pass covers this noise."""
    plan = vp.NGrams(max_length=4).release(talk, BUDGET, seed=5).plan
    assert_rounds(seen, plan.certificate.proof.rounds)
    later = [each for each in seen if type(each) in (CellNoise, NoisyLevels)][1:]
    passes = [each for each in plan.transcript if "cost" in each]
    assert {each["pass"] for each in passes} == {"measurement", "screening", "vote"} | (
        {"second chance"} & {each["pass"] for each in passes}
    )
    for noise, each in zip(later, passes, strict=True):
        unit = 1 << each["bounding"]["bits"]
        if isinstance(noise, CellNoise):
            assert (noise.sigma, noise.unit) == (each["sigma"], unit)
        else:
            levels = [rule.threshold_units for rule in noise.rules]
            assert noise.rules == tuple(ThresholdRule("gaussian", each["sigma"], level, 1 / unit) for level in levels)
        paid = Fraction(later_after(plan.certificate.proof).square) * each["cost"] / 2**40
        # Sensitivity is 1 or more.
        assert Fraction(each["sigma"]) ** -2 <= paid


def test_counts_and_rankings_run_with_the_planned_noise(talk, seen):
    """The numbers of users in classes, the counts of grams, and the rankings have the planned noise."""
    words = vp.Items(max_items_per_user=20).release(talk, BUDGET, seed=1)
    del seen[:]
    counts = words.count(talk, BUDGET, seed=1)
    proof = counts.plan.certificate.proof
    assert [(each.sigma, each.unit, each.cell) for each in seen] == [
        (proof.classes_sigma, 1, 1),
        (proof.menu[proof.chosen].sigma, UNIT, UNIT),
    ]
    del seen[:]
    ranking = words.top(talk, BUDGET, k=3, seed=1)
    assert [(type(each), each.rate, each.unit) for each in seen] == [
        (GumbelNoise, ranking.plan.certificate.proof.rate, UNIT)
    ]


@pytest.mark.jit
def test_profiles_run_with_the_planned_noise(seen):
    """Rounds over single and joint values, counts and cover have the planned noise.

    The rounds over joint values are within the cap of later releases.
    """
    table = pl.DataFrame({"u": range(3000), "city": ["a", "b"] * 1500, "n": [1, 2, 3, 4] * 750})
    profile = vp.profile(table, user="u", budget=BUDGET, columns=["city", "n"], joint=[("city", "n")], seed=1)
    later = profile.plan.certificate.proof.later
    steps = kinds(seen, ScoreStep)
    assert len(steps) == 40
    # Sensitivity is 1 or more.
    assert sum(Fraction(each.sigma) ** -2 for each in steps[20:]) <= Fraction(later.joining)
    cover = seen[-1]
    assert (cover.sigma, cover.unit, cover.cell) == (later.cover.sigma, SHARES, CELL)
    (counts,) = (each["certificate"]["numbers"] for each in profile.plan.transcript if each["pass"] == "counts")
    ran = {each.sigma for each in kinds(seen, CellNoise)}
    assert ran <= {later.cover.sigma, profile.plan.certificate.proof.choice.sigma, counts["classes_sigma"]} | {
        each["sigma"] for each in counts["menu"]
    }


@pytest.mark.jit
def test_sequences_run_with_the_planned_noise(talk, seen):
    """The rate of every count is exactly its share of epsilon over the sensitivity."""
    alphabet = [f"{part}{phrase:02}" for part in "abcd" for phrase in range(40)]
    for mechanism in (
        vp.Sequences(max_length=6, alphabet=alphabet),
        vp.papers.VariableLengthNGrams(6, 3, alphabet=alphabet[:20]),
    ):
        del seen[:]
        proof = mechanism.release(talk, vp.Budget(4), seed=1).plan.certificate.proof
        assert {type(each) for each in seen} == {ContextNoise}
        tree = [each for each in seen if each.paths.limits.max_length == proof.max_length and each.shares.size]
        users = [each for each in seen if each.first >= 1 << 31]
        assert [each.paths.limits.max_length for each in users[:1]] == [1] * (proof.tree == "contexts")
        for noise in tree:
            limits = noise.paths.limits
            assert (limits.epsilon, limits.alphabet in (proof.alphabet, 0, 1)) == (proof.epsilon, True)
            for share in noise.shares.tolist():
                own = noise.paths.shares[share]
                assert own.own > 0
                assert own.before + own.own <= 1
                assert noise.paths.rate(share) == proof.epsilon * own.own / proof.max_length


def test_nights_run_with_the_planned_noise(tmp_path, seen):
    """Each reading has the sigma, factor and cell of its night.

    The readings of all nights are compared.
    """
    series = vp.Items().series(tmp_path / "series", BUDGET, nights=3, seed=1)
    for night in (1, 2, 3):
        rows = pl.DataFrame({"who": range(900), "what": [f"tea{night}", "milk"] * 450})
        series.run(vp.read(rows, user="who", items="what"), night=night)
    proof = series.plan.certificate.proof
    readings = kinds(seen, NightReading)
    assert [each.number for each in readings] == [1, 2, 3]
    for each, sigma, factor in zip(readings, proof.sigmas, proof.factors, strict=True):
        assert (each.sigma, each.factor, each.unit, each.cell) == (sigma, factor, 1 << proof.bits, proof.cell)


def test_votes_of_heavy_hitters_follow_the_certificate():
    """A prefix needs theta votes, votes have the certified distribution, and the number of rounds is limited."""
    rules, laws = Rules(Ballot(0.4, 5, 0.2, 0.3), 2), []
    gate = votes_gate(rules, Secret.from_seed(1))

    def votes(ballot, words, secret):
        laws.append((ballot, words))
        return {"enough": 5, "more": 6, "short": 4}

    assert gate.round(votes) == gate.round(votes) == {"enough", "more"}
    assert laws == [(rules.ballot, "one")] * 2
    with pytest.raises(InternalError, match="more rounds"):
        gate.round(votes)


def test_the_noise_of_a_tree_covers_the_number_of_counted_steps():
    """The gate computes the number of counted steps from released lengths by the rule of the certificate."""
    told = []

    class Walk:
        def released(self, kind, noise, *given):
            found = np.zeros((noise.shares.size, noise.width), np.int64)
            if kind == "lengths":
                found[0, 0] = 4_000
            return found

        def count_first(self, steps):
            told.append(steps)

    engine = type("Engine", (), {"tree_walk": lambda self, *given: Walk()})()
    rule = Fraction(4, 5), Fraction(15)
    gate = PathsGate(text_of(PathsProof("contexts", Fraction(1), 2, 9, 4, None, *rule)), Secret.from_seed(1))
    gate.open(engine, ("a", "b"))
    gate.lengths(np.array([1, 2, 3, 9]), Fraction(1, 10))
    root = np.array([-1], np.int32)
    gate.variety(2, 1, Fraction(1, 9))
    _, scale = gate.level(root, root, [Fraction(1, 2)])
    # All sequences have one symbol and an end, so two steps are counted. The level gets half of the remaining 0.8.
    assert told == [2]
    assert (gate.steps, scale.tolist()) == (2, [2 / 0.4])
    passes = json.loads(gate.record[1])
    assert passes[0]["steps"] == passes[-1]["sensitivity"] == 2
    assert passes[0]["released"] == [4_000, 0, 0, 0]


def test_released_lengths_determine_the_length_of_sequences():
    """The gate computes the length of sequences from released lengths.

    Statistics of more symbols are rejected.
    """
    told = []

    class Walk:
        def released(self, kind, noise, *given):
            found = np.zeros((noise.shares.size, noise.width), np.int64)
            if kind == "lengths":
                found[0, :6] = [4_000, 3_000, 0, 2, 0, 1]
            return found

        def count_first(self, steps):
            told.append(steps)

    engine = type("Engine", (), {"tree_walk": lambda self, *given: Walk()})()
    rule = Fraction(4, 5), Fraction(15), 4
    gate = PathsGate(text_of(PathsProof("contexts", Fraction(1), 9, 1_000, 4, None, *rule)), Secret.from_seed(1))
    gate.open(engine, tuple("abcdefghi"))
    assert gate.longest == 1_000
    kept, _ = gate.lengths(np.array([1, 2, 3, 4, 6, 9, 1_000]), Fraction(1, 10))
    # After the class of two symbols, noise explains all counts. One more class is kept, with its released number.
    assert (gate.longest, kept.tolist(), told) == (3, [4_000, 3_000, 0], [gate.steps])
    assert gate.steps <= 3
    passes = json.loads(gate.record[1])
    assert passes[0]["longest"] == 3
    assert passes[0]["released"] == [4_000, 3_000, 0, 2, 0, 1, 0]
    with pytest.raises(InternalError, match="another statistic"):
        gate.variety(4, 1, Fraction(1, 9))


@pytest.mark.parametrize("usual", [0, 10])
def test_a_usual_length_out_of_range_is_rejected(usual):
    """A usual length must be between 1 and the maximum length, and requires the other two numbers of the rule."""
    rule = Fraction(4, 5), Fraction(15)
    check(Certificate(Claim(1.0, 0.0), PathsProof("contexts", Fraction(1), 2, 9, 4, None, *rule, 9)))
    for given in ((*rule, usual), (None, None, 3)):
        with pytest.raises(InternalError, match="does not apply"):
            check(Certificate(Claim(1.0, 0.0), PathsProof("contexts", Fraction(1), 2, 9, 4, None, *given)))


@pytest.mark.parametrize("rule", [(Fraction(4, 5), None), (Fraction(0), Fraction(1)), (Fraction(2), Fraction(1))])
def test_an_incomplete_rule_for_steps_is_rejected(rule):
    """A certificate must contain both numbers of the rule in range, or neither, and only for contexts."""
    claim = Claim(1.0, 0.0)
    with pytest.raises(InternalError, match="does not apply"):
        check(Certificate(claim, PathsProof("contexts", Fraction(1), 2, 9, 4, None, *rule)))
    with pytest.raises(InternalError, match="does not apply"):
        check(Certificate(claim, PathsProof("grams", Fraction(1), 2, 9, 4, None, Fraction(1, 2), Fraction(1))))


def test_an_alphabet_without_a_source_is_rejected():
    """The alphabet must be given or found by a release that the certificate contains."""
    with pytest.raises(InternalError, match="does not apply"):
        check(Certificate(Claim(1.0, 0.0), PathsProof("contexts", Fraction(1), None, 9, 4, None)))


def test_a_node_that_does_not_continue_the_path_of_its_parent_is_rejected():
    """The share of a node depends on the path to its parent. Nodes of other levels and several roots are rejected."""
    gate = PathsGate(text_of(PathsProof("contexts", Fraction(1), 2, 3, 4, None)), Secret.from_seed(1))

    class Walk:
        def released(self, kind, noise, *given):
            return np.zeros((noise.shares.size, noise.width), np.int64)

        def lengthen(self, *given):
            pass

    engine = type("Engine", (), {"tree_walk": lambda self, *given: Walk()})()
    with pytest.raises(InternalError, match="symbols"):
        gate.open(engine, ("a",))
    gate = PathsGate(text_of(PathsProof("contexts", Fraction(1), 2, 3, 4, None)), Secret.from_seed(1))
    gate.open(engine, ("a", "b"))
    half, root = Fraction(1, 2), np.array([-1], np.int32)
    gate.lengths(np.array([1, 2]), Fraction(1, 10))
    with pytest.raises(InternalError, match="roots"):
        gate.level(np.repeat(root, 2), root, [half, half])
    gate = PathsGate(text_of(PathsProof("contexts", Fraction(1), 2, 3, 4, None)), Secret.from_seed(1))
    gate.open(engine, ("a", "b"))
    gate.lengths(np.array([1, 2]), Fraction(1, 10))
    gate.variety(3, 1, Fraction(1, 9))
    gate.level(root, root, [half])
    gate.level(np.array([0, 0], np.int32), np.array([0, -2], np.int32), [half, Fraction(1)])
    owns = [gate.paths.shares[share].own for share in gate.numbers.tolist()]
    assert owns == [Fraction(2, 5), Fraction(1, 5), Fraction(2, 5)]
    with pytest.raises(InternalError, match="a level that is not the last one"):
        gate.level(np.array([0], np.int32), np.array([1], np.int32), [half])
    # The path to node 2 has no budget left.
    with pytest.raises(InternalError, match="more than the budget"):
        gate.level(np.array([2], np.int32), np.array([1], np.int32), [half])
    with pytest.raises(InternalError, match="twice"):
        gate.variety(3, 1, Fraction(1, 9))


@pytest.mark.parametrize("before", [3, 4])
def test_a_context_with_an_unknown_symbol_is_rejected(before):
    """A number above that of the last symbol would identify a context of the next node."""
    gate = paths_gate(Limits(Fraction(1), 2, 4, 5), [1, 1, 1, 1, 2, 0, 2], Secret.from_seed(1))
    tenth, whole = Fraction(1, 10), Fraction(1)
    gate.level(np.array([-1], np.int32), np.array([-1], np.int32), [tenth])
    gate.level(np.array([0, 0], np.int32), np.array([0, -2], np.int32), [tenth, whole])
    passes = gate.record
    with pytest.raises(InternalError, match="no symbol"):
        gate.level(np.array([1], np.int32), np.array([before], np.int32), [whole])
    assert gate.record == passes


@pytest.mark.parametrize(("row", "symbol"), [(1, -2), (-1, 0), (-1, 1), (2, -2), (0, 2)])
def test_a_gram_that_does_not_belong_to_its_row_is_rejected(row, symbol):
    """A symbol or row out of range is rejected, because the resulting gram could have no budget."""
    gate = paths_gate(Limits(Fraction(1), 2, 4, 5), [1, 1, 1, 1, 2, 0, 2], Secret.from_seed(1), "grams")
    none, tenth, whole = np.empty(0, np.int64), Fraction(1, 10), Fraction(1)
    gate.children(none, none, [tenth])
    gate.children(np.array([0, 0]), np.array([1, 0]), [whole, tenth])
    passes = gate.record
    with pytest.raises(InternalError, match=r"a gram that does not pay|after the end mark"):
        gate.children(np.array([row]), np.array([symbol]), [whole])
    assert gate.record == passes


def test_keys_with_counts_have_the_noise_of_their_certificate(seen):
    """The noise of the classes, the numbers per key and the sums of other rows is compared in units of the grid."""
    table = pl.DataFrame({"who": range(3000), "what": ["tea", "milk", "bread"] * 1000})
    keyed = vp.KeyCounts({"what": "string"}, [("what",)])
    data = keyed.read(table, user="who", options=vp.ReadOptions(progress=False))
    found = keyed.release(data, BUDGET)
    proof = found.plan.certificate.proof
    assert proof.chosen == 0
    (numbers,) = kinds(seen, KeyNumbers)
    assert (numbers.noise, numbers.unit) == (proof.menu[0], UNIT)
    classes, rest = kinds(seen, WholeNoise)
    assert classes.rate == proof.choosing > 0
    assert rest.rate * SHARES == proof.rest > 0
    assert len({each.purpose for each in (numbers, classes, rest)}) == 3
    assert all(each.secret.equals(numbers.secret) for each in (classes, rest))
