"""Tests of faults that the gate or the certificate check must detect, so that noise is never below the certificate."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from support.corpora import corpus_of
from support.look import read_engine
from voxpop.engine.contract import check_engine
from voxpop.engine.local.nights import NightlyPools
from voxpop.errors import InternalError, ReleaseError
from voxpop.mechanisms.counts.mechanism import CountsMechanism
from voxpop.mechanisms.counts.releasing import listed_grams
from voxpop.mechanisms.ngrams.releasing import Runner
from voxpop.mechanisms.rounds import adaptive, menu
from voxpop.privacy import cumulative
from voxpop.privacy.certificate import admits, bounding_of, check, novel_of, square_of
from voxpop.privacy.gate.counts import CountsGate
from voxpop.privacy.gate.nights import NightsGate
from voxpop.privacy.gate.rounds import AdaptiveGate
from voxpop.privacy.passes import Certificate
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import Weighted
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting
from voxpop.release.verifying import verify

BUDGET = vp.Budget(4, 1e-7)
NGRAMS = vp.NGrams(max_length=4)
REFUSED = "nothing was read"


@pytest.fixture(scope="module")
def talk():
    """Return phrases of 4,000 users, with so many words that releases of n-grams have screening votes."""
    phrases = [" ".join(f"{part}{phrase:02}" for part in "abcd") for phrase in range(40)]
    table = pl.DataFrame({"who": [row // 4 for row in range(16_000)], "what": phrases * 400})
    return read_engine(table, user="who", text="what")


# Passes of n-grams with less noise or a lower price than the schedule requires.


def quiet_votes(step):
    """Reduce the noise of votes by two percent."""
    if step.vote is None:
        return step
    rules = tuple(replace(rule, scale=0.98 * rule.scale) for rule in step.vote.rules)
    return replace(step, vote=replace(step.vote, rules=rules))


def quiet_passes(step):
    """Reduce the noise of votes and measurements by two percent."""
    return replace(quiet_votes(step), sigma=0.98 * step.sigma)


def cheap_passes(step):
    """Reduce the payment of users by two percent."""
    if step.charge is None:
        return step
    return replace(step, charge=replace(step.charge, cost=step.charge.cost * 98 // 100))


def generous(step):
    """Make the mu^2 of the charge larger than the part of the cap that users pay."""
    if step.charge is None:
        return step
    charge = replace(step.charge, square=4 * step.charge.square, sigma=step.charge.sigma / 2)
    return replace(quiet_passes(step), sigma=step.sigma / 2, charge=charge)


def blind_measurements(step):
    """Measure one gram fewer, so that the last gram gets no noise."""
    return step if step.vote is not None else replace(step, size=step.size - 1)


def fewer_candidates(step):
    """List only candidates with a high forecast in a screening vote, although users weigh all valid candidates."""
    return step if step.kind != "screening" else replace(step, vote=replace(step.vote, candidates=step.among.rule))


def coarser_grid(step):
    """Replace the grid with a coarser grid, which has a larger sensitivity than the charge assumes."""
    if step.kind != "vote":
        return step
    setting = replace(
        step.shares.setting, bits=20, cutoff=step.shares.setting.cutoff >> (step.shares.setting.bits - 20)
    )
    return replace(step, shares=replace(step.shares, setting=setting))


def no_bound(step):
    """Do not charge for the rounding of users with large individual sensitivities."""
    if step.kind != "vote":
        return step
    return replace(step, shares=replace(step.shares, setting=replace(step.shares.setting, bound=1)))


def same_name(step):
    """Use the same draws for all measurements."""
    return step if step.kind != "measurement" else replace(step, length=1)


FAULTS = [
    quiet_votes,
    quiet_passes,
    cheap_passes,
    generous,
    blind_measurements,
    fewer_candidates,
    coarser_grid,
    no_bound,
    same_name,
]


@pytest.mark.jit
def test_a_valid_schedule_is_accepted(talk, monkeypatch):
    """The release has every type of pass, and copies of all steps give the same release."""
    plan, real = NGRAMS.plan(BUDGET), Runner.execute
    honest = plan.release(talk, seed=5)
    assert {each["pass"] for each in honest.plan.transcript} >= {"measurement", "screening", "vote"}
    monkeypatch.setattr(Runner, "execute", lambda self, step: real(self, replace(step)))
    assert plan.release(talk, seed=5).to_list() == honest.to_list()


@pytest.mark.jit
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_an_invalid_schedule_is_rejected(fault, talk, monkeypatch):
    """Each fault is rejected before noise is drawn."""
    real = Runner.execute
    monkeypatch.setattr(Runner, "execute", lambda self, step: real(self, step if step.rounds else fault(step)))
    with pytest.raises(InternalError, match=REFUSED):
        NGRAMS.plan(BUDGET).release(talk, seed=5)


@pytest.mark.jit
@pytest.mark.parametrize("cheaper", [False, True])
def test_less_noise_in_the_published_algorithm_is_rejected(cheaper, talk, monkeypatch):
    """All users pay for each pass of DPNE. The charges add up to the cap, so less noise exceeds it."""
    plan, real = vp.papers.DPNE(max_length=3).plan(BUDGET), Runner.execute
    assert len(plan.release(talk, seed=1))

    def quieter(self, step):
        return real(self, quiet_passes(step) if cheaper and step.kind == "vote" else step)

    monkeypatch.setattr(Runner, "execute", quieter)
    if cheaper:
        with pytest.raises(InternalError, match=REFUSED):
            plan.release(talk, seed=1)
    else:
        assert len(plan.release(talk, seed=1))


# Set union runs with the numbers of the certificate, so other fields of the plan have no effect.


@pytest.mark.jit
def test_changes_to_a_plan_outside_of_its_certificate_have_no_effect(talk):
    """Rounds with a hundredth of the noise are inserted into a checked plan, but the release ignores them."""
    plan = vp.Items(max_items_per_user=20).plan(BUDGET)
    honest = plan.release(talk, seed=3)
    louder = tuple(replace(each, sigma=each.sigma / 100) for each in plan.passes[0].rounds)
    object.__setattr__(plan, "passes", (replace(plan.passes[0], rounds=louder),))
    assert plan.release(talk, seed=3).to_list() == honest.to_list()


def test_a_certificate_with_less_noise_is_rejected():
    """If the noise of any round in a certificate is reduced by one percent, the certificate is rejected."""
    numbers = vp.Items(max_items_per_user=20).plan(BUDGET).certificate.to_dict()
    assert check(Certificate.from_dict(numbers)) <= BUDGET.delta
    for number in range(len(numbers["numbers"]["rounds"]["later"])):
        changed = json.loads(json.dumps(numbers))
        changed["numbers"]["rounds"]["later"][number]["sigma"] *= 0.99
        with pytest.raises(InternalError, match="does not apply"):
            check(Certificate.from_dict(changed))


@pytest.mark.parametrize("change", [{"unknown": 1}, {"version": 2}, {"proof": "counts"}, {"claim": None}])
def test_a_certificate_of_another_format_is_rejected(change):
    """Unknown fields, other versions and other proofs are rejected."""
    numbers = vp.papers.OptimalSelection().plan(BUDGET).certificate.to_dict()
    with pytest.raises(InternalError, match="schema"):
        Certificate.from_dict(numbers | change)


def test_chosen_rounds_that_exceed_their_caps_do_not_run(talk):
    """The gate compares the chosen rounds with the caps and does not rely on the menu."""
    plan = vp.Items().plan(BUDGET)
    entry = plan.passes[0].entry(100).stated()
    for fault in (
        replace(entry, later=tuple(replace(each, sigma=0.98 * each.sigma, mu=each.mu / 0.98) for each in entry.later)),
        replace(entry, first=replace(entry.first, threshold=entry.first.threshold * 98 // 100)),
        replace(entry, later=tuple(replace(each, threshold=0.98 * each.threshold) for each in entry.later)),
        replace(entry, later=entry.later[:-1]),
        replace(entry, pool=50),
        replace(entry, caps=replace(entry.caps, items=(*entry.caps.items[:-1], 50))),
        replace(entry, margin=entry.margin / 2),
        replace(entry, first=None),
    ):
        gate = AdaptiveGate(plan.certificate.to_json(), Secret.fresh())
        gate.open(talk)
        with pytest.raises(InternalError):
            gate.choose(fault)  # The noisy counts do not exist yet.
        gate.classes()
        with pytest.raises(InternalError):
            gate.choose(fault)
        with pytest.raises(InternalError, match=REFUSED):
            gate.round(0)


def test_chosen_rounds_are_within_each_cap():
    """The sum of the squares of mu and the probability of a novel item are compared with separate caps."""
    plan = vp.Items().plan(BUDGET)
    slack, rounds = plan.certificate.proof.slack, plan.passes[0].entry(100).stated()
    square, novel = float(square_of(rounds)), novel_of(rounds)
    kept = replace(plan.certificate.proof.choice, square=1.001 * square, novel=1.001 * novel)
    assert admits(kept, slack, rounds)
    assert not admits(replace(kept, square=0.999 * square), slack, rounds)
    assert not admits(replace(kept, novel=0.999 * novel), slack, rounds)
    assert not admits(kept, replace(slack, passes=len(rounds.later) + 1), rounds)


def test_counts_run_only_after_their_limit_is_chosen(talk):
    """Counts require a chosen limit, the choice requires noisy classes, and the limit must be in the menu."""
    release = vp.Items(max_items_per_user=100).release(talk, BUDGET, seed=1)
    plan = CountsMechanism().plan(BUDGET, release)
    gate = CountsGate(plan.certificate.to_json(), Secret.fresh())
    gate.open(talk, listed_grams(release, 1))
    for early in (gate.counted, lambda: gate.choose(0)):
        with pytest.raises(InternalError, match=REFUSED):
            early()
    gate.classes((8, 64))
    for refused in (lambda: gate.choose(len(plan.proof.menu)), lambda: gate.choose(0), lambda: gate.classes((8, 64))):
        with pytest.raises(InternalError, match=REFUSED):
            refused()
    assert [each["pass"] for each in json.loads(gate.record[1])] == ["classes"]


def test_passes_run_once_and_in_order(talk):
    """A pass that runs twice would use the same noise twice. A data set that is not in the certificate has no gate."""
    gate = AdaptiveGate(vp.Items(max_items_per_user=20).plan(BUDGET).certificate.to_json(), Secret.fresh())
    for early in (gate.released, gate.classes, lambda: gate.round(0), lambda: gate.round(1)):
        with pytest.raises(InternalError, match=REFUSED):
            early()
    gate.open(talk)
    with pytest.raises(InternalError, match=REFUSED):
        gate.open(talk)
    last = len(gate.proof.rounds.later)
    for number in range(last + 1):
        for other in (number - 1, number + 1, last + 1):
            with pytest.raises(InternalError, match=REFUSED):
                gate.round(other)
        with pytest.raises(InternalError, match=REFUSED):
            gate.released()
        gate.round(number)
    with pytest.raises(InternalError, match=REFUSED):
        gate.round(last)
    several = AdaptiveGate(
        vp.Items(max_items_per_user=20).plan_each(("a", "b"), BUDGET).certificate.to_json(), Secret.fresh()
    )
    with pytest.raises(InternalError, match=REFUSED):
        several.open(talk)
    several.of("a", Secret.from_seed(1))
    for name, secret in (
        ("a", Secret.fresh()),
        ("c", Secret.fresh()),
        ("b", several._secret),
        ("b", Secret.from_seed(1)),
    ):
        with pytest.raises(InternalError, match=REFUSED):
            several.of(name, secret)


def test_a_night_runs_only_once(tmp_path):
    """A second reading of a night would add the same noise again. Nights beyond the plan are rejected."""
    plan = vp.Items().series(tmp_path / "series", BUDGET, nights=3, seed=1).plan
    gate, pools = NightsGate(plan.certificate.to_json(), Secret.from_seed(1)), NightlyPools.empty()
    gate.missed(pools, 1)
    tonight = (lambda scores, decided, levels: np.full(scores.size, 2, np.uint8)), 1
    gate.begin(pools, corpus_of([[["tea"]]]), 2, *tonight)
    for again in (
        lambda: gate.missed(pools, 1),
        lambda: gate.complete(pools, 1, *tonight),
        lambda: gate.begin(pools, corpus_of([[["tea"]]]), 2, *tonight),
        lambda: gate.missed(pools, 4),
    ):
        with pytest.raises(InternalError, match=REFUSED):
            again()


def test_functions_without_noise_cannot_read_weights(talk):
    """Weights have no public attribute and can be read only with the noise of a gate."""
    weights = check_engine(talk).weigh(CalibratedRule(Weighted(), RuleSetting(10, 2)), 10, Secret.fresh(), "x")
    assert not [name for name in dir(weights) if name in ("weights", "ids", "words")]
    for opening in (
        lambda: weights.chosen(lambda weights, names, texts: weights > 0),
        lambda: weights.measured(lambda weights, names: weights, 1000),
    ):
        with pytest.raises(InternalError, match="without noise"):
            opening()


# Faults in the bound of the planner, and in the bound of the whole installation.


def halved(monkeypatch, modules):
    """Halve the bound for novel items in some modules."""
    real = cumulative.novel_release
    for module in modules:
        monkeypatch.setattr(module, "novel_release", lambda *given, **more: 0.5 * real(*given, **more))


@pytest.mark.jit
def test_a_planner_with_a_wrong_bound_cannot_make_a_plan(monkeypatch):
    """The check of the certificate uses the formulas of the proof instead of those of the planner."""
    menu._entry.cache_clear()
    halved(monkeypatch, [adaptive])
    with pytest.raises(InternalError, match="exceed"):
        vp.Items(max_items_per_user=100).plan(vp.Budget(3, 1e-7))


@pytest.mark.jit
def test_a_release_of_a_faulty_installation_is_not_verified(monkeypatch, tmp_path, talk):
    """An installation without the planted fault rejects a release made by an installation with the fault."""
    menu._entry.cache_clear()
    with monkeypatch.context() as patch:
        real = cumulative.novel_release
        loaded = [each for name, each in sys.modules.items() if name.startswith("voxpop") and each is not None]
        halved(patch, [each for each in loaded if getattr(each, "novel_release", None) is real])
        vp.Items(max_items_per_user=100).release(talk, vp.Budget(3, 1e-7)).save(tmp_path / "words")
        verify(Path(tmp_path / "words"))
    with pytest.raises(ReleaseError, match="certificate"):
        verify(Path(tmp_path / "words"))


class Louder(Weighted):
    """A subclass of a proved weighting that adds larger weights."""

    def add(self, histogram, items, starts, setting):
        """Add a hundred times the weight."""
        before = histogram.copy()
        super().add(histogram, items, starts, setting)
        histogram += 99 * (histogram - before)


def test_a_weighting_derived_from_a_proved_one_is_rejected():
    """The proof of a weighting does not apply to a subclass, which can add other weights."""
    with pytest.raises(InternalError):
        bounding_of(CalibratedRule(Louder(), RuleSetting(10, 2)))


def test_the_gate_rejects_a_weighting_of_another_class():
    """The other weighting has the same numbers, but adds other weights."""
    corpus = corpus_of([["tea"]] * 10)
    plan = vp.papers.SetUnion(10, "weighted", accounting="joint").plan(BUDGET)
    gate, _ = plan.begin(1)
    bounding = plan.certificate.proof.first.bounding
    setting = RuleSetting(bounding.limit, bounding.norm, bounding.bits, bounding.cutoff, bounding.bound)
    with pytest.raises(InternalError):
        gate.released(check_engine(corpus), CalibratedRule(Louder(), setting))
