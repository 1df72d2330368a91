"""Tests of individual budgets, including public values, rejected inputs and the second-chance pass."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from searches.walk_search import Watched
from support.look import read_engine
from voxpop.errors import InternalError
from voxpop.mechanisms.ngrams.candidates import Bands, Candidates, Deferred, DeferredList, Grams, Joined, Pairs
from voxpop.mechanisms.ngrams.charges import Charges, usual_charges, worths_of
from voxpop.mechanisms.ngrams.constants import FEWEST_IN_PIECE, LEAST_SHARE, SCREENING_CHARGES
from voxpop.mechanisms.ngrams.plan import SIDE_VOTES
from voxpop.mechanisms.ngrams.votes import ThresholdVote, deferred_by
from voxpop.mechanisms.rounds.menu import deciding
from voxpop.privacy.decisions import ThresholdRule
from voxpop.privacy.gate.walks import LaterPasses
from voxpop.privacy.individual import WHOLE, IndividualFilter
from voxpop.privacy.numerics import MOST_PASSES

BUDGET = vp.Budget(8, 1e-4)
INDIVIDUAL = vp.NGrams(max_length=5, max_phrases_per_user=10, max_spurious_share=0.1)
SENTENCES = ["thank you very much indeed", "see you soon my friend", "good night and sleep well", "how are you"]


def crowd(users=1500):
    """Return users who write whole sentences, parts of sentences, and words in any order."""
    rng = np.random.default_rng(4)
    words = sorted({word for sentence in SENTENCES for word in sentence.split()})
    words += [f"word{number}" for number in range(130)]
    rows = []
    for user in range(users):
        said = SENTENCES[rng.integers(len(SENTENCES))].split()
        rows.append((user, " ".join(said[: rng.integers(1, len(said) + 1)])))
        rows.append((user, " ".join(rng.choice(words, 6))))
    return pl.DataFrame(rows, schema=["who", "what"], orient="row")


def read(table):
    return read_engine(table, user="who", text="what")


def public_numbers(users):
    """Return the plans of two releases.

    The second release reads a larger collection, but uses the weights of the first release.
    """
    table = crowd()
    more = pl.concat([table, table.with_columns(pl.col("who") + 10_000).head(users)])
    watched = Watched(read(table))
    first = INDIVIDUAL.release(watched, BUDGET, seed=1)
    second = INDIVIDUAL.release(Watched(read(more), tuple(watched.passes)), BUDGET, seed=1)
    assert first.plan.second_chance is not None
    return first.plan.to_dict(), second.plan.to_dict()


@pytest.mark.jit
def test_public_numbers_do_not_depend_on_the_payments_of_users():
    """With the same noisy weights, all public numbers are the same, although payments differ."""
    one, other = public_numbers(180)
    assert one == other


def with_leak(monkeypatch, leak):
    """Make the second-chance pass depend on the remaining budgets of users."""
    real = LaterPasses.run

    def execute(self, step):
        if step.kind == "second chance":
            step = leak(step, self._walk._engine._budgets._left)
        return real(self, step)

    monkeypatch.setattr(LaterPasses, "run", execute)


def priced_by_leftovers(step, left):
    """Set the noise of the pass from the mean of the remaining budgets."""
    sigma = step.sigma * (float(left.mean()) / WHOLE) ** -0.5
    rules = tuple(replace(rule, scale=sigma) for rule in step.vote.rules)
    return replace(step, sigma=sigma, vote=replace(step.vote, rules=rules))


def published_payers(step, left):
    """Drop some of the lowest cutpoints, depending on the number of users with remaining budget."""
    return replace(step, vote=replace(step.vote, rules=step.vote.rules[int((left > 0).sum()) % 7 :]))


@pytest.mark.jit
@pytest.mark.parametrize("leak", [priced_by_leftovers, published_payers])
def test_public_numbers_that_depend_on_payments_are_detected(monkeypatch, leak):
    """The comparison of public numbers detects deliberately broken variants that depend on payments."""
    with_leak(monkeypatch, leak)
    one, other = public_numbers(180)
    assert one != other


def test_the_plan_of_a_release_lists_the_executed_passes():
    """The plan lists votes, screening votes and the second-chance pass, with the expected number of spurious grams."""
    release = INDIVIDUAL.release(read(crowd()), BUDGET, seed=2)
    ran, second = release.plan.ran, release.plan.second_chance
    assert all(run.measurement_sigma is not None for run in ran[1:])
    assert any(run.screening_sigma is not None for run in ran)
    assert len(second.released) == len(second.spurious) == len(ran) - 1
    counted = np.bincount(release.grams["length"].to_numpy(), minlength=6)[1:]
    votes = [sum(released for _, _, released in run.bands) for run in ran[1:]]
    assert [a + b for a, b in zip(votes, second.released, strict=True)] == counted[1 : len(ran)].tolist()
    # The planned share is 0.1. The charges can exceed this share, because they include the effect of one more candidate
    # on the price (docs/privacy/ngrams.md).
    assert 0 < sum(run.spurious for run in ran[1:]) + sum(second.spurious) <= 1.1 * 0.1 * len(release)


@pytest.mark.jit
@pytest.mark.parametrize("extraction", [INDIVIDUAL, vp.NGrams(3), vp.papers.DPNE(4, 10)], ids=str)
def test_the_rows_of_a_plan_equal_the_passes_of_the_transcript(extraction):
    """The rows have the types, lengths and noise of the transcript, and the first plan has the same rows."""
    plan = extraction.plan(BUDGET)
    release = plan.release(read(crowd()), seed=2)
    rows = [[row for row in each.to_dict()["passes"] if "ran" in row] for each in (plan, release.plan)]
    planned, (words, *later) = ([(row["pass"], row.get("length")) for row in each] for each in rows)
    assert planned == [words, *later] == [("words", 1), *later]
    assert not any(row["ran"] for row in rows[0])
    # The second-chance pass has no length in the plan, because it covers several lengths.
    noted = [
        (step["pass"], None if step["pass"] == "second chance" else step["length"], step["sigma"])
        for step in release.plan.transcript
        if step["pass"] in {name for name, _ in later}
    ]
    ran = [(row["pass"], row.get("length"), row["ran"]["sigma"]) for row in rows[1] if row["ran"]]
    assert ran[1:] == noted
    assert len(noted) >= 3


@pytest.mark.jit
def test_every_part_of_a_released_phrase_is_released():
    """The second-chance pass adds only grams with parts that are already released."""
    for seed in range(4):
        grams = {tuple(gram) for gram in INDIVIDUAL.release(read(crowd()), BUDGET, seed=seed)}
        assert all(gram[:-1] in grams and gram[1:] in grams for gram in grams if len(gram) > 1)


def test_a_maximum_length_of_one_has_no_later_passes():
    """The only length uses the whole budget."""
    release = vp.NGrams(1, max_phrases_per_user=3).release(read(crowd()), BUDGET, seed=1)
    assert len(release) > 0
    assert release.plan.second_chance is None


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 9, 32])
def test_charges_use_the_whole_budget_for_at_least_five_lengths(length):
    """With at least 5 lengths, charges use the whole budget after length 1. With fewer lengths, some budget remains."""
    found = usual_charges((1.0,) * length)
    assert len(found) == length - 1
    assert sum(found) == pytest.approx(1.0) if length >= 5 else sum(found) <= 0.53


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 9])
def test_equal_length_weights_do_not_change_charges(length):
    """If all lengths have the same weight, even a weight other than 1, charges do not change by a single bit."""
    assert usual_charges(worths_of([3.0] * length)) == usual_charges((1.0,) * length)


@pytest.mark.jit
@pytest.mark.parametrize("values", [[0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 10, 10], [0, 1e6, 0, 0, 1e-6], [1, 4, 1], [0, 1]])
def test_length_weights_change_charges_within_bounds(values):
    """Each length keeps at least a third of its usual charge, and the total budget does not change."""
    usual, valued = usual_charges((1.0,) * len(values)), usual_charges(worths_of(values))
    assert all(one >= LEAST_SHARE * other for one, other in zip(valued, usual, strict=True))
    assert sum(valued) <= 1 + LEAST_SHARE
    budget = vp.Budget(4, 1e-7)
    plain, plan = (vp.NGrams(len(values), **each).plan(budget) for each in ({}, {"length_weights": values}))
    square = [each.first.square + each.least_later for each in (plain, plan)]
    assert square[1] == pytest.approx(square[0], rel=1e-3)  # Both spend the budget up to a tolerance.
    assert plan.delta_spent <= budget.delta


def test_a_weight_for_only_the_longest_grams_leaves_no_budget_for_a_second_chance():
    """All votes together use the whole budget, and the charge of length 4 is more than twice its usual charge."""
    alone = usual_charges(worths_of([0, 0, 0, 0, 1]))
    assert sum(alone) == pytest.approx(1.0)
    assert alone[2] > 2 * usual_charges((1.0,) * 5)[2]
    short = usual_charges(worths_of([0, 1, 0.1]))
    assert short[0] > usual_charges((1.0,) * 3)[0]
    assert sum(short) < 0.6  # As usual, much budget remains for the second-chance pass.


@pytest.mark.parametrize("dense", [False, True])
def test_a_user_with_candidates_in_every_vote_has_enough_budget(dense):
    """The rates reserve the charges for all lengths up to the longest run of the user."""
    charges, left = Charges(0.5, (1.0,) * 9, dense=dense), np.array([WHOLE])
    for length in range(2, 10):
        measurement, charges = charges.measurement(length)
        square, rates, charges = charges.vote(length)
        for charge in (measurement, charges.charge(square, 1.0, rates)):
            costs = charge.costs(left, np.array([True]), np.array([10 - length]))
            assert costs[0] > 0
            left = left - costs
    assert left[0] >= 0


def vote_of(names, levels, sizes, cutpoints):
    """Return a vote about all pairs of 1,000 words, with the given cutpoints."""
    rule = ThresholdRule("gaussian", 1.0, 0, 2.0**-20)
    candidates = Candidates.all_valid(Grams.of_tokens(1000), 1000, single=False)
    return ThresholdVote.of(candidates, rule, np.array(cutpoints))


class OneBand:
    """A replacement for bands that assigns all candidates to one band."""

    def __init__(self, size):
        self.sizes = np.array([size])

    def of_names(self, names):
        return np.zeros(names.size, np.int64)


def test_deferred_candidates_are_grouped_by_level():
    """Only candidates that were not selected are deferred. Groups that noise fully explains are omitted."""
    vote = vote_of(None, None, None, [0.5, 1.0, 2.0, 3.0])
    rng = np.random.default_rng(1)
    levels = np.concatenate([np.full(900, 1), np.full(600, 2), np.full(500, 4), rng.integers(1, 6, 10)])
    names, band = np.arange(levels.size), OneBand(2500)
    result = vote.select(band, np.zeros(levels.size, np.int64), levels, 0.0, 0.5)
    held = np.zeros(levels.size, np.int64)
    places, piece = deferred_by(held, levels, vote.votes(band, held, levels), result)
    assert not result.selected[places].any()
    assert (np.diff(places) > 0).all()
    assert set(piece.tolist()) == set(range(piece.max() + 1))
    assert min(np.bincount(piece)) >= FEWEST_IN_PIECE
    for number in range(piece.max()):
        assert levels[places[piece == number]].max() <= levels[places[piece == number + 1]].min()
    nothing = vote.select(OneBand(10**6), held, levels, 0.0, 0.0)
    few, _ = deferred_by(held, levels, vote.votes(OneBand(10**6), held, levels), nothing)
    assert few.size < names.size


def test_a_list_of_deferred_candidates_includes_all_lengths():
    """Deferred candidates are numbered from zero, and these numbers are their names.

    Each number belongs to a length and a piece, and selected grams are inserted into their length in order.
    """
    rows = [np.array([[0, 2], [1, 1], [2, 0]], np.int32), np.array([[0, 1, 1]], np.int32)]
    missed = (
        Deferred(np.array([2, 5, 9]), np.array([1, 0, 1]), rows[0]),
        Deferred(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 3), np.int32)),
        Deferred(np.array([4]), np.array([0]), np.hstack([rows[1], rows[1][:, -1:]])),
    )
    listed = DeferredList(missed)
    assert listed.count == 4
    assert listed.sizes.tolist() == [1, 2, 1]
    assert listed.of_names(np.arange(4)).tolist() == [1, 0, 1, 2]
    assert listed.lengths_of([1.0, 2.0, 4.0]) == (3.0, 0.0, 4.0)
    grams = [Grams.of_tokens(3), grams_of([[0, 0], [2, 1]]), grams_of([[0, 0, 0]]), grams_of([[0, 0, 0, 0]])]
    grams, added = listed.joined(grams, np.array([0, 2, 3]))
    assert added == (2, 0, 1)
    assert grams[1].tokens.tolist() == [[0, 0], [0, 2], [2, 0], [2, 1]]
    assert grams[3].tokens.tolist() == [[0, 0, 0, 0], [0, 1, 1, 1]]


def grams_of(rows):
    none = np.zeros(len(rows), np.int32)
    return Grams(np.array(rows, np.int32), none, none)


def test_joined_candidates_have_distinct_numbers_and_separate_bands():
    """The likely candidates are numbered first, followed by the candidates of the screening vote."""
    valid = Candidates.all_valid(Grams.of_tokens(4), 4, single=False)
    pairs = Pairs(valid.pairs.left_group, valid.pairs.partner_group, np.array([1, 2, 3, 4]), single=False)
    likely = Candidates(pairs, np.full(4, 3))
    further = np.array([(1 << 32) | 0, (2 << 32) | 1])
    joined = Joined(likely, further, np.array([2, 0]), 1.0)
    names = joined.names(np.arange(joined.count))
    assert joined.count == likely.count + 2
    assert np.unique(names).size == joined.count
    every = np.sort(valid.names(np.arange(valid.count)))
    assert every[joined.subset.holds(every)].tolist() == sorted(names.tolist())
    bands = Bands((likely,), joined, 4)
    assert bands.sizes.tolist() == [likely.count, 1, 0, 1, 0]
    assert bands.of_names(np.sort(names)).tolist() == [
        3 if n == further[0] else 1 if n == further[1] else 0 for n in np.sort(names)
    ]


def test_too_many_cutpoints_are_rejected():
    """The slack of 128-bit decisions covers votes with fewer than 128 cutpoints."""
    rule = ThresholdRule("gaussian", 1.0, 0, 2.0**-20)
    with pytest.raises(InternalError, match="cutpoints"):
        ThresholdVote.of(None, rule, np.linspace(0.1, 1, 200))


def test_the_slack_covers_every_pass():
    """Screening votes and the second-chance pass count as passes, and `MOST_PASSES` includes them."""
    rounds = deciding(vp.NGrams(2).plan(BUDGET).first).rounds
    assert 32 + SIDE_VOTES + 1 + len(rounds) == MOST_PASSES
    assert len(SCREENING_CHARGES) + 1 == SIDE_VOTES


def test_users_spend_their_remaining_budget_on_the_second_chance_pass():
    """The charge and the noise of this pass do not depend on the remaining budgets, so both are public."""
    charges = Charges(0.5, (1.0,) * 9)
    square, rates = charges.second_chance()
    charge = charges.charge(square, 1.0, rates)
    left = np.array([WHOLE, WHOLE // 3, 0])
    assert charge.costs(left, np.ones(3, bool)).tolist() == left.tolist()
    assert charge.sigma == IndividualFilter(0.5).charge(int(0.75 * WHOLE), 1.0).sigma
