"""Tests of n-grams with a public list of words, and of the share of the budget for words."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from voxpop.engine.contract import check_engine
from voxpop.errors import InputError, InternalError
from voxpop.mechanisms.ngrams import constants as tuned
from voxpop.mechanisms.ngrams import releasing
from voxpop.mechanisms.rounds.menu import LIMITS, SHARE_OF_CHOICE, released_in_rounds
from voxpop.privacy.certificate import admits, check, square_of
from voxpop.privacy.gate.rounds import AdaptiveGate, PublicParts
from voxpop.privacy.gate.walks import later_after
from voxpop.privacy.secret import Secret
from voxpop.reading.arrow import text_buffers

BUDGET = vp.Budget(4, 1e-6)
TEXTS = ["thank you very much", "see you soon again", "good night all of you"]
NOBODY = [f"nobody{number}" for number in range(200)]
PLAN = vp.NGrams(max_length=3, known=["thank", "you", "night", *NOBODY]).plan(BUDGET)


def corpus_of(users):
    """Return users with one text each."""
    table = pl.DataFrame({"who": range(users), "what": [TEXTS[user % 3] for user in range(users)]})
    return vp.read(table, user="who", text="what", options=vp.ReadOptions(progress=False))


# The share of the budget for words, which depends on the number of users.


@pytest.mark.jit
@pytest.mark.parametrize("settings", [{}, {"max_length": 3, "length_weights": [5, 1, 1]}, {"known": NOBODY}], ids=list)
def test_words_and_later_lengths_share_one_cap_for_every_choice(settings):
    """Later passes get their own part and exactly the part of the cap that the rounds of words do not spend."""
    plan = vp.NGrams(**settings).plan(BUDGET)
    proof, menu = plan.certificate.proof, plan.first
    whole = Fraction(proof.choice.square) + Fraction(proof.later.square)
    assert len(menu.shares) == len(tuned.WORDS_OF_FEW)
    for share in menu.shares:
        rounds = menu.entry(LIMITS[0], share).stated()
        assert admits(proof.choice, proof.slack, rounds)
        both = square_of(rounds) + Fraction(later_after(replace(proof, rounds=rounds)).square)
        assert whole * (1 - Fraction(1, 2**50)) < both <= whole
        part = square_of(rounds) / (whole + Fraction(proof.choice.sigma) ** -2)
        assert float(part) == pytest.approx(share, rel=1e-6)
    assert later_after(proof) == proof.later
    assert check(replace(plan.certificate, proof=replace(proof, rounds=rounds))) == plan.delta_spent


@pytest.mark.jit
def test_the_share_for_words_decreases_with_the_number_of_users():
    """The numbers of users in the table are in units of the noise of a count with the whole budget."""
    for budget in (BUDGET, vp.Budget(1, 1e-7)):
        menu = vp.NGrams().plan(budget).first
        unit = menu.sigma * SHARE_OF_CHOICE**0.5
        for place, (least, share) in enumerate(tuned.WORDS_OF_FEW):
            counts = np.zeros(12, np.int64)
            counts[0] = np.ceil(least * unit)
            assert menu.share_for(counts) == pytest.approx(share)
            if place:
                assert menu.share_for(counts - 2) > share
    assert menu.share_for(np.full(12, -100)) == menu.shares[0]
    # Before the choice, plans show the default share, which is the share for many users.
    assert menu.entry(LIMITS[0]) == menu.entry(LIMITS[0], menu.shares[-1])


@pytest.mark.jit
def test_small_collections_use_the_share_for_few_users():
    """The plan of a release contains the share for words, and later passes use the remaining budget."""
    plan = vp.NGrams(max_length=3).plan(BUDGET)
    few, many = (plan.release(corpus_of(users), seed=3).plan for users in (600, 6000))
    assert few.words.share == pytest.approx(tuned.WORDS_OF_FEW[0][1])
    assert many.words.share == pytest.approx(tuned.WORDS_OF_FEW[1][1])
    assert few.later == pytest.approx(plan.least_later)
    assert few.later < many.later < plan.later
    assert few.to_dict()["share_of_words"] == few.words.share
    assert few.certificate.proof.later == many.certificate.proof.later


@pytest.mark.jit
def test_passes_beyond_the_remaining_budget_are_rejected(monkeypatch):
    """In this deliberately broken variant, phrases get the whole cap of words in addition to their own part."""
    plan = vp.NGrams(max_length=3).plan(BUDGET)
    more = plan.least_later + plan.certificate.proof.choice.square
    monkeypatch.setattr(type(plan), "later_after", lambda plan, words: more)
    with pytest.raises(InternalError, match="less noise"):
        plan.release(corpus_of(600), seed=3)


# Listed words without users.


def listed(words):
    return PublicParts([pa.array(words, pa.large_string())], text_buffers)


def nobody_and_charge(runs):
    """Return means for a list without users.

    These are the mean number of released words, its standard error, the mean charge, and the mean charge for only the
    chosen level.
    """
    ngrams = vp.NGrams(max_length=3, max_phrases_per_user=10, max_spurious_share=0.3, known=NOBODY)
    plan, engine, found = ngrams.plan(BUDGET), check_engine(corpus_of(30)), []
    certificate = plan.certificate.to_json()
    for seed in range(runs):
        gate = AdaptiveGate(certificate, Secret.from_seed(seed))
        words, _ = released_in_rounds(plan.first, gate, engine, listed(NOBODY))
        out = sum(word.startswith("nobody") for word in words.to_pylist())
        found.append((out, gate.spurious, of_the_chosen(gate)))
    (out, charged, by_level), (spread, *_) = np.mean(found, axis=0), np.std(found, axis=0)
    return out, spread / runs**0.5, charged, by_level


def of_the_chosen(gate):
    """Return the charge for only the chosen level."""
    ran = [each["level"] for each in gate._transcript if each["pass"] == "list"]
    known = gate.proof.rounds.known
    tails = [*known.tails, 0.0]
    return known.listed.size * tails[ran[0] - 1] if ran else 0.0


@pytest.mark.jit
def test_the_charge_for_words_is_at_least_the_expected_number_of_spurious_words():
    """A charge for only the chosen level would be too low, because it ignores all other possible levels.

    The probability of a false alarm is below 1e-8.
    """
    out, error, charged, by_level = nobody_and_charge(150)
    assert 0.02 < out <= charged + 6 * error
    assert by_level < 0.9 * out


@pytest.mark.jit
def test_phrases_have_the_remaining_allowance_of_spurious_grams(monkeypatch):
    """The count of spurious grams begins with the charge for words, and the total charge is within the bound."""
    corpus, share = corpus_of(900), PLAN.mechanism.max_spurious_share

    def charge(seed):
        release = PLAN.release(corpus, seed=seed)
        ran, second = release.plan.ran, release.plan.second_chance
        return ran[0].spurious, sum(run.spurious for run in ran) + sum(second.spurious if second else ()), len(release)

    words, whole, released = charge(1)
    assert 0 < words <= tuned.SPURIOUS_WORDS * share * (released + 1)
    assert whole <= 1.3 * share * released
    real = releasing.State.with_words
    states = []

    def seen(state, outcome):
        states.append(real(state, outcome))
        return states[-1]

    monkeypatch.setattr(releasing.State, "with_words", seen)
    charge(1)
    assert states[0].spurious == words


@pytest.mark.jit
def test_listed_words_and_their_phrases_need_fewer_users():
    """With a list, words with 24 users and phrases of these words are released more often."""
    rows = [(user, "thank you very much") for user in range(24)] + [(user + 24, f"other{user}") for user in range(600)]
    table = pl.DataFrame(rows, schema=["who", "what"], orient="row")
    corpus = vp.read(table, user="who", text="what", options=vp.ReadOptions(progress=False))
    words = ["thank", "you", "very", "much", *NOBODY[:20]]
    sizes = [
        np.mean([len(ngrams.plan(BUDGET).release(corpus, seed=seed)) for seed in range(5)])
        for ngrams in (vp.NGrams(3), vp.NGrams(3, known=words))
    ]
    assert sizes[1] > sizes[0] + 1
    assert PLAN.known_users_needed(0.5) < PLAN.users_needed(0.5, length=1)


def test_plans_describe_the_list_and_its_risk():
    """Plans contain the size and fingerprint of the list, and a bound for listed words of one user.

    A certificate without its list is rejected.
    """
    text, numbers = str(PLAN), PLAN.to_dict()["known"]
    assert numbers["size"] == 203
    assert numbers["share_without_users"] == tuned.SPURIOUS_WORDS * PLAN.mechanism.max_spurious_share
    assert "known word of one user is released with probability at most" in text
    assert PLAN.certificate.proof.known.size == 203
    with pytest.raises(InternalError):
        check(replace(PLAN.certificate, proof=replace(PLAN.certificate.proof, known=None, rounds=rounds_with_list())))
    pairs, without = vp.NGrams(known=pl.DataFrame({"a": ["x"], "b": ["y"]})), vp.NGrams().plan(BUDGET)
    with pytest.raises(InputError, match="2 columns"):
        pairs.release(corpus_of(10), BUDGET)
    with pytest.raises(InputError, match="no list"):
        without.known_users_needed(0.5)


def rounds_with_list():
    return PLAN.first.entry(LIMITS[0]).stated()
