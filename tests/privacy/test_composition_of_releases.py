"""Tests that compare the total cost of several releases with dp-accounting and with direct formulas."""

import json
import math
from functools import cache

import pytest
from dp_accounting import pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

import voxpop as vp
from voxpop.mechanisms.counts.mechanism import CountsMechanism
from voxpop.privacy.composition import compose, composed_delta, sum_up
from voxpop.privacy.gaussian import delta as exact_delta
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.privacy.guarantee import Expense, Guarantee
from voxpop.privacy.numerics import MOST_PASSES, walk_slack
from voxpop.privacy.peeling import picks_spend

INTERVAL = 1e-2


def gaussian(novel, mu, epsilon=50.0, delta=0.9):
    """Return a guarantee with large epsilon and delta, so that only its spend matters."""
    return Guarantee(epsilon, delta, spend=Expense(novel, mu))


def by_dp_accounting(epsilon, guarantees):
    accountant = pld.PLDAccountant(value_discretization_interval=INTERVAL)
    for each in guarantees:
        accountant.compose(each.to_dp_event())
    return accountant.get_delta(epsilon)


@given(st.floats(0.1, 5), st.lists(st.tuples(st.floats(0, 0.3), st.floats(0.05, 1)), min_size=1, max_size=4))
def test_releases_with_a_spend_compose_according_to_the_formula(epsilon, pairs):
    """Novel items are released independently of each other, and the squares of mu add up."""
    hits = [novel / (2 * ndtr(-mu / 2)) for novel, mu in pairs]
    hit, mu = -math.expm1(sum(math.log1p(-min(each, 1 - 1e-16)) for each in hits)), math.hypot(*(mu for _, mu in pairs))
    expected = min(1.0, hit + (1 - hit) * gaussian_delta(epsilon, mu))
    slack = walk_slack(epsilon, MOST_PASSES) * len(pairs)
    assert composed_delta(epsilon, [gaussian(*pair) for pair in pairs]) == pytest.approx(expected + slack, rel=1e-9)


@given(st.floats(0.01, 3), st.floats(0.1, 3))
def test_a_pure_release_costs_as_much_as_randomised_response(epsilon, own):
    """Among all pure releases with the same epsilon, randomised response is the worst case at any total epsilon."""
    expected = max(0.0, (math.exp(own) - math.exp(epsilon)) / (1 + math.exp(own)))
    assert composed_delta(epsilon, [Guarantee(own, 0.0)]) == pytest.approx(expected, rel=1e-8, abs=1e-11)


@settings(max_examples=10)
@given(st.lists(st.floats(0.1, 1), min_size=2, max_size=6), st.floats(0.1, 2))
def test_pure_releases_agree_with_randomised_response_in_dp_accounting(epsilons, at):
    """In dp-accounting, neighbours of randomised response differ by a replaced user, but the worst pair is the same."""
    from dp_accounting.pld import privacy_loss_distribution as losses

    whole = losses.identity(1e-4)
    for epsilon in epsilons:
        whole = whole.compose(
            losses.from_randomized_response(2 / (1 + math.exp(epsilon)), 2, value_discretization_interval=1e-4)
        )
    expected = whole.get_delta_for_epsilon(at)
    assert expected - 1e-3 < composed_delta(at, [Guarantee(each, 0.0) for each in epsilons]) <= expected + 1e-9


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_events_agree_with_the_composition_of_voxpop(epsilon):
    """In events, only one neighbour can release novel items. In Voxpop, both can, so the delta is slightly larger."""
    budget = vp.Budget(2, 1e-6)
    guarantees = [
        vp.papers.SetUnion(10, "policy-gaussian", 5.0, "joint").plan(budget).guarantee,
        vp.papers.DPNE(max_length=3, max_phrases_per_user=10).plan(budget).guarantee,
        gaussian(0.0, 0.3),
    ]
    found, ours = by_dp_accounting(epsilon, guarantees), composed_delta(epsilon, guarantees)
    assert (
        found * (1 - 2e-3)
        <= ours
        <= found + sum(each.spend.hit - each.spend.novel for each in guarantees) + 2e-3 * found
    )


@pytest.mark.parametrize("own", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("at", [-1.0, 0.0, 0.05, 0.5, 3.0])
def test_events_of_pure_releases_are_at_least_as_bad(own, at):
    """At every epsilon, the exact delta of the Laplace event is at least the delta of randomised response."""
    scale = Guarantee(own, 0.0).to_dp_event().noise_multiplier
    laplace = 1 - math.exp((at - 1 / scale) / 2) if abs(at) <= 1 / scale else max(0.0, 1 - math.exp(at))
    response = (math.exp(own) - math.exp(at)) / (1 + math.exp(own)) if abs(at) <= own else max(0.0, 1 - math.exp(at))
    assert laplace >= response - 1e-12


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_composed_epsilon_is_at_most_the_sum(count):
    """Delta is the sum, and the composition of one release has the same epsilon as the release."""
    whole = compose(
        [vp.papers.SetUnion(10, "policy-gaussian", 5.0, "joint").plan(vp.Budget(1, 1e-9)).guarantee] * count
    )
    assert whole.delta == pytest.approx(count * 1e-9)
    assert whole.epsilon == 1 if count == 1 else whole.epsilon <= count


@cache
def guarantee_of_phrases(epsilon):
    """Return the guarantee of a plan, which has a spend."""
    return vp.NGrams(max_length=2).plan(vp.Budget(epsilon, 1e-7)).guarantee


@given(
    st.lists(st.sampled_from([0.1, 0.2718281, 1.4142135, 2]), min_size=1, max_size=2),
    st.lists(st.floats(0.1, 2.0), min_size=1, max_size=2),
)
def test_the_composed_epsilon_has_six_digits(planned, others):
    """The composed epsilon is rounded up to six digits, so texts print it exactly. Its delta is at most the sum."""
    parts = [*map(guarantee_of_phrases, planned), *(vp.Guarantee(each, 1e-8) for each in others)]
    whole = compose(parts)
    printed = float(f"{whole.epsilon:g}")
    assert printed == whole.epsilon or whole.epsilon == sum_up([each.epsilon for each in parts])
    assert composed_delta(whole.epsilon, parts) <= whole.delta


def test_the_cost_of_gaussian_releases_grows_with_the_root_of_their_number():
    """For example, a hundred counts with epsilon 0.1 have a total epsilon of less than 2 instead of 10."""
    once = (
        CountsMechanism(4)
        .plan(vp.Budget(0.1, 1e-9), vp.Release.from_items(_words(), _Plan(), Guarantee(1, 1e-9)))
        .guarantee
    )
    assert compose([once] * 100).epsilon < 2


def test_the_sum_of_many_different_epsilons_is_an_upper_bound():
    """More releases never cost less, although losses are rounded to a grid."""
    epsilons = [0.01 * math.sqrt(1 + number) for number in range(60)]
    deltas = [composed_delta(1.0, [Guarantee(each, 0.0) for each in epsilons[:count]]) for count in (10, 20, 40, 60)]
    assert deltas == sorted(deltas)
    assert composed_delta(sum(epsilons), [Guarantee(each, 0.0) for each in epsilons]) < 1e-6


def test_a_total_that_includes_a_seeded_release_is_not_private():
    """The dp-accounting event of a seeded release is non-private, too."""
    seeded = Guarantee(1, 1e-9, private=False)
    assert not compose([Guarantee(1, 1e-9), seeded]).private
    assert type(seeded.to_dp_event()).__name__ == "NonPrivateDpEvent"


def test_wrong_arguments_are_rejected():
    """An empty list, different neighbours and a missing event raise an error."""
    once = Guarantee(1, 1e-9)
    for guarantees in ([], [once, Guarantee(1, 1e-9, "one user replaced")]):
        with pytest.raises(vp.errors.InputError, match="neighbouring relation"):
            compose(guarantees)
    with pytest.raises(vp.errors.InputError, match="no event"):
        once.to_dp_event()


def test_a_spend_can_be_converted_to_a_dict_and_back():
    """Numbers out of range are rejected."""
    guarantee = gaussian(1e-9, 0.5)
    assert Guarantee.from_dict(guarantee.to_dict()).spend == guarantee.spend
    numbers = [
        {"novel": 2, "mu": 1},
        {"novel": 0, "mu": -1},
        {"novel": 0, "mu": math.inf},
        {"novel": math.nan, "mu": 1},
    ]
    for bad in [*numbers, {"novel": 0, "mu": "1"}, {"novel": 0, "mu": 1, "apart": "true"}]:
        with pytest.raises(ValueError, match="out of range"):
            Expense.from_dict(bad)


@pytest.mark.parametrize(
    "edited",
    [
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"epsilon": "1"},
        {"delta": -1e-9},
        {"delta": 5},
        {"private": "no"},
        {"private": 1},
        {"server_view": None},
        {"neighbours": 3},
        {"spend": {"novel": 1e-9, "mu": 0.5, "apart": 1}},
    ],
    ids=str,
)
def test_a_guarantee_that_was_edited_in_its_file_is_rejected(edited, tmp_path):
    """Guarantees from files are checked.

    Otherwise, a negative epsilon would cancel other spending, and any text would be treated as private.
    """
    values = gaussian(1e-9, 0.5).to_dict()
    assert Guarantee.from_dict(values).to_dict() == values
    with pytest.raises((TypeError, ValueError)):
        Guarantee.from_dict({**values, **edited})
    release = vp.Release.from_items(_words(), _Plan(), gaussian(1e-9, 0.5))
    release.save(tmp_path / "words")
    record = tmp_path / "words" / "release.json"
    content = json.loads(record.read_text())
    assert vp.load(tmp_path / "words").guarantee == release.guarantee
    record.write_text(json.dumps({**content, "guarantee": {**content["guarantee"], **edited}}))
    with pytest.raises(vp.errors.ReleaseError, match=r"changed|damaged"):
        vp.load(tmp_path / "words")


class _Plan:
    def to_dict(self):
        return {}


def _words():
    import pyarrow as pa

    return pa.array([f"w{i}" for i in range(9)])


@pytest.mark.parametrize(
    "mechanism", [vp.Items(max_items_per_user=10), vp.NGrams(max_length=3, max_phrases_per_user=10)]
)
def test_a_count_after_adaptive_rounds_adds_one_gaussian(mechanism):
    """Delta follows the same formula as for a single release, with the root of the sum of all squares as mu.

    Epsilon is below the sum of the two epsilons.
    """
    budget, count = vp.Budget(2, 1e-6), gaussian(0.0, 0.3)
    spend = mechanism.plan(budget).guarantee.spend
    assert spend.two_sided
    for epsilon in (0.5, 2.0, 4.0):
        expected = spend.hit + (1 - spend.hit) * exact_delta(epsilon, math.hypot(spend.mu, 0.3))
        slack = 2 * walk_slack(epsilon, MOST_PASSES)
        found = composed_delta(epsilon, [mechanism.plan(budget).guarantee, count])
        assert found == pytest.approx(expected + slack, rel=1e-8)
    both = compose([mechanism.plan(budget).guarantee, gaussian(0.0, 0.3, epsilon=1.3, delta=1e-6)])
    assert both.epsilon < 2.6 < budget.epsilon + 1.3


def test_two_sided_spends_are_restored():
    """A two-sided spend can be restored from its dict, but cannot be converted to a dp-accounting event."""
    spend = Expense(1e-2, 0.3, two_sided=True)
    assert Expense.from_dict(spend.to_dict()) == spend
    with pytest.raises(vp.errors.InputError, match="no event"):
        Guarantee(1, 1e-2, spend=spend).to_dp_event()
    for wrong in ({"apart": True}, {"two_sided": 1}):
        with pytest.raises(ValueError, match="out of range"):
            Expense.from_dict({"novel": 1e-2, "mu": 0.3, **wrong})


def test_releases_with_a_loose_spend_cost_at_most_their_epsilon_and_delta():
    """The spend of a ranking costs more than its epsilon and delta, so the composition uses epsilon and delta."""
    union = vp.Items(max_items_per_user=10).plan(vp.Budget(2, 1e-7)).guarantee
    ranking = Guarantee(1, 1e-8, spend=picks_spend(1.0, 10, 1000, 0.117))
    pair = composed_delta(2.5, [union, Guarantee(1, 1e-8)])
    assert composed_delta(2.5, [union, ranking]) <= pair * (1 + 1e-12)
    assert composed_delta(2.5, [union, ranking], plain=False) > 0
