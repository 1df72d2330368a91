"""End-to-end tests of heavy hitters, including plans, releases, rejected inputs, and audits by simulation."""

import json
import math
from functools import cache

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from support.exact import votes_gate
from support.look import read_engine
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.errors import BudgetError, InputError
from voxpop.mechanisms.heavy_hitters.plan import HittersPlan
from voxpop.mechanisms.heavy_hitters.protocol import Electorate, Rules, grown_trie, spell
from voxpop.mechanisms.heavy_hitters.releasing import release_of_trie
from voxpop.privacy.planned import with_record
from voxpop.privacy.secret import Secret
from voxpop.privacy.trie.accountant import trie_delta
from voxpop.privacy.trie.ballot import Ballot, discovery_rate, voters_needed
from voxpop.privacy.trie.calibrate import best_sampling

pytestmark = pytest.mark.usefixtures("fixed_secrets")

BUDGET = vp.Budget(epsilon=1, delta=1e-6)


def corpus_of(counts: dict[str, int], spare: int = 0) -> LocalCorpus:
    """Return a corpus with the given number of users for each word and `spare` users with unique words.

    Each user has one word.
    """
    words = [word for word, count in counts.items() for _ in range(count)]
    words += [f"own{number:06}" for number in range(spare)]
    return read_engine(pl.DataFrame({"who": range(len(words)), "what": words}), user="who", items="what")


def discovery(plan: HittersPlan, users: int) -> float:
    """Return the probability that a word with this number of users is found in the worst case."""
    return discovery_rate(users, plan.rules.ballot, plan.rounds)


def unlike_words(count: int, length: int) -> list[str]:
    """Return words without common prefixes. Each word repeats a different letter."""
    return [chr(0x4E00 + number) * length for number in range(count)]


@pytest.mark.jit
@pytest.mark.parametrize("unit", [1, 2, 3, 4, "auto"])
@pytest.mark.parametrize("alphabet", ["characters", "bytes"])
def test_common_words_are_found_and_rare_words_are_not(unit, alphabet):
    """Words with 400 users are released in the order of their bytes, but words with one user are not."""
    corpus = corpus_of({"sun": 400, "star": 400, "sunny": 400, "ü": 400}, spare=300)
    hitters = vp.HeavyHitters(max_length=10, unit=unit, alphabet=alphabet)
    release = hitters.release(corpus, BUDGET)
    assert list(release) == ["star", "sun", "sunny", "ü"]
    assert release.guarantee.private
    assert release.guarantee == vp.Guarantee(1, 1e-6)


def test_words_that_are_too_long_are_skipped():
    """The end mark counts as a symbol, so with max_length 5, a word has at most four other symbols."""
    corpus = corpus_of({"four": 300, "fives": 300})
    assert list(vp.HeavyHitters(max_length=5).release(corpus, BUDGET)) == ["four"]
    assert list(vp.HeavyHitters(max_length=6).release(corpus, BUDGET)) == ["fives", "four"]


def test_each_user_votes_for_the_most_frequent_word_with_a_public_tie_break():
    """The word of a user is the user's most frequent word. Ties are broken by bytes."""
    rows = [["b", "b", "a"]] * 300 + [["d", "c"]] * 300
    corpus = read_engine(pl.DataFrame({"who": range(600), "what": rows}), user="who", tokens="what")
    assert list(vp.HeavyHitters().release(corpus, BUDGET)) == ["b", "c"]
    rules = Rules(Ballot(0.9, 5), 10, words="many")
    spelling = spell(corpus, rules)
    electorate = Electorate.of(spelling, corpus.user_key, rules)
    trie = grown_trie(spelling, electorate, rules, votes_gate(rules, Secret.from_seed(1)))
    assert trie.words == {("a",), ("b",), ("c",), ("d",)}


def test_a_seed_is_reproducible_marked_and_independent_of_the_order_of_rows():
    """A seed gives the same release for any order of the rows, and the guarantee is marked as not private."""
    rng = np.random.default_rng(3)
    table = pl.DataFrame({"who": rng.integers(0, 3000, 20_000), "what": (400 * rng.random(20_000) ** 3).astype(int)})
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=1)
    for hitters in (vp.HeavyHitters(max_length=5), vp.papers.TrieHH(max_length=5, words="many")):
        one, two = (
            hitters.release(read_engine(each, user="who", items="what"), BUDGET, seed=4) for each in (table, shuffled)
        )
        assert list(one) == list(two)
        assert not one.guarantee.private
        assert "NOT PRIVATE: made with a seed" in str(one.guarantee)


def test_an_empty_release_is_saved_like_any_release(tmp_path):
    """A release without words is saved and loaded like any other."""
    corpus = read_engine(pl.DataFrame({"who": [1, 2], "text": ["", None]}), user="who", text="text")
    release = vp.HeavyHitters().release(corpus, BUDGET)
    assert len(release) == 0
    release.save(tmp_path / "none")
    assert vp.load(tmp_path / "none") == release


@pytest.mark.parametrize(
    ("aggregation", "saw"), [("open", "the sums of votes of every node"), ("secure", "not the sums of any single node")]
)
def test_the_record_lists_the_sums_that_the_server_received(aggregation, saw, tmp_path):
    """The guarantee of a federation covers the release.

    The record lists the sums that the server received in addition.
    """
    plan = vp.HeavyHitters(max_length=4).plan(vp.Budget(1, 1e-6))
    ran = with_record(plan, aggregation=aggregation)
    release = release_of_trie([["tea"]], ran, ran.guarantee)
    release.save(tmp_path / "found")
    record = json.loads((tmp_path / "found" / "release.json").read_text())
    assert saw in record["guarantee"]["server_view"]
    assert "not against the server" in record["plan"]["trust"]
    assert vp.load(tmp_path / "found").guarantee == release.guarantee != plan.guarantee
    assert "server_view" not in plan.guarantee.to_dict()
    assert "trust" not in plan.to_dict()


@pytest.mark.slow  # the test concerns the simulation, and not the package
@pytest.mark.parametrize(("length", "epsilon", "delta"), [(15, 20, 2.9e-11), (2, 20, 3.9e-11), (17, 12.76, 2e-11)])
def test_the_best_threshold_is_found_if_probabilities_are_rounded_to_zero(length, epsilon, delta):
    """For a few candidate thresholds, all probabilities of one more vote are rounded to 0.

    The best plan has another threshold.
    """
    plan = vp.HeavyHitters(max_length=length).plan(vp.Budget(epsilon, delta))
    one = best_sampling(plan.budget, plan.rounds, "one", "one").ballot
    assert plan.delta_spent <= delta
    assert plan.users_needed(0.9) < voters_needed(0.9, one, plan.rounds)


def test_plan_and_release_contain_no_private_number():
    """The plan of a release equals a plan that was computed without data."""
    release = vp.HeavyHitters().release(corpus_of({"tea": 500}), BUDGET)
    plan = vp.HeavyHitters().plan(BUDGET)
    assert json.dumps(release.plan.to_dict()) == json.dumps(plan.to_dict())
    assert {"probability": 0.9, "users": plan.users_needed(0.9)} in plan.to_dict()["users_needed"]
    for refused in ({"length": 2}, {"per_user": 1}):
        with pytest.raises(InputError, match="does not apply to heavy hitters"):
            plan.users_needed(0.9, **refused)
    assert discovery(plan, plan.users_needed(0.9)) >= 0.9 > discovery(plan, plan.users_needed(0.9) - 1)
    assert plan.delta_spent == trie_delta(1, plan.rules.ballot, 4) <= 1e-6
    assert str(plan.users_needed(0.9)) in str(plan)
    assert plan.rounds == 4
    assert [plan.rules.size(rounds) for rounds in range(5)] == [0, 4, 6, 8, 10]
    assert vp.HeavyHitters(unit=1).rounds == 10
    assert vp.HeavyHitters(unit=4).rounds == 3
    assert vp.HeavyHitters(max_length=3).rounds == 1


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"max_length": 1}, "`max_length`"),
        ({"max_length": True}, "`max_length`"),
        ({"max_length": 1000}, "`max_length`"),
        ({"unit": 0}, "`unit`"),
        ({"unit": 5}, "`unit`"),
        ({"unit": "all"}, "`unit`"),
        ({"alphabet": "bits"}, "`alphabet`"),
    ],
)
def test_invalid_fields_are_rejected(fields, word):
    """Each error names its field."""
    with pytest.raises(InputError, match=word):
        vp.HeavyHitters(**fields)


@pytest.mark.parametrize("field", ["words", "unit", "max_length"])
def test_fields_of_the_paper_out_of_range_are_rejected(field):
    """Each error names its field."""
    with pytest.raises(InputError, match=f"`{field}`"):
        vp.papers.TrieHH(**{field: 0 if field in ("unit", "max_length") else "some"})


@pytest.mark.parametrize("words", ["one", "many"])
def test_independent_sampling_with_the_numbers_of_the_paper_is_proved(words):
    """Voxpop proves independent sampling at the paper's rate and threshold, which needs many more users per word."""
    plan = vp.papers.TrieHH(words=words).plan(BUDGET)
    assert "Theorem 1 of TrieHH" in str(plan)
    assert plan.guarantee == vp.Guarantee(1, 1e-6)
    assert plan.delta_spent <= 1e-6
    assert plan.users_needed(0.9) > 8 * vp.HeavyHitters().plan(BUDGET).users_needed(0.9)


def test_a_plan_without_delta_is_rejected():
    """A plan without delta is rejected, because pure differential privacy is impossible without noise."""
    for hitters in (vp.HeavyHitters(), vp.papers.TrieHH()):
        with pytest.raises(BudgetError, match="delta above 0"):
            hitters.plan(vp.Budget(1))


@pytest.mark.jit
@pytest.mark.parametrize("holders", [45, 55, 62, 95])
def test_words_are_found_as_often_as_planned(holders):
    """Words without common prefixes are found as often as planned (false alarm below 1e-9, 6.2 standard deviations)."""
    plan = vp.HeavyHitters(max_length=10).plan(vp.Budget(1, 1 / 65_876_900))
    words = unlike_words(150, 9)
    corpus = corpus_of(dict.fromkeys(words, holders))
    runs = 6
    found = sum(len(plan.release(corpus, seed=seed)) for seed in range(runs))
    expected, trials = discovery(plan, holders), runs * len(words)
    assert abs(found - trials * expected) < 6.2 * math.sqrt(trials * expected * (1 - expected)) + 1


@pytest.mark.jit
def test_one_eighth_of_the_users_that_the_paper_requires_is_enough():
    """At epsilon 1 and delta 1/(100 n), one eighth of the users that the paper's plan requires is enough.

    With an eighth of the paper's 2,694 users, each of 300 words is found. With this number of users, the paper's plan
    finds no word. With 2,694 users, the paper's plan finds about nine in ten words. False alarms are below 1e-9 by
    exact binomial tails.
    """
    budget = vp.Budget(1, 1 / 65_876_900)
    ours, theirs = (each.plan(budget) for each in (vp.HeavyHitters(), vp.papers.TrieHH()))
    eighth = theirs.users_needed(0.9) // 8
    assert discovery(ours, eighth) > 1 - 1e-12
    assert discovery(theirs, eighth) < 1e-12
    corpus = corpus_of(dict.fromkeys(unlike_words(300, 9), eighth))
    assert len(ours.release(corpus, seed=1)) == 300
    assert len(theirs.release(corpus, seed=1)) == 0
    assert ours.users_needed(0.9) * 8 <= theirs.users_needed(0.9)


@cache
def found_rate(holders: int, theta: int, words: str) -> float:
    """Return the share of 100,000 unrelated words that the real arrays find in one round."""
    rules = Rules(Ballot(0.5, theta), 1, 3, 3, words=words)
    corpus = corpus_of(dict.fromkeys(unlike_words(1000, 2), holders))
    spelling = spell(corpus, rules)
    electorate = Electorate.of(spelling, corpus.user_key, rules)
    runs = (grown_trie(spelling, electorate, rules, votes_gate(rules, Secret.from_seed(seed))) for seed in range(100))
    return sum(len(trie.words) for trie in runs) / 100_000


@pytest.mark.jit
@pytest.mark.parametrize("words", [pytest.param("one", marks=pytest.mark.slow), "many"])
def test_the_accountant_bounds_the_simulated_effect_of_one_user(words):
    """The accountant bounds the effect of one user on the probability that the real arrays find a word.

    A rate over 100,000 words deviates by more than 0.0118 with probability below 1e-12 (Hoeffding), so 60 comparisons
    raise a false alarm with probability below 1e-10. A broken server that requires one vote fewer is detected with the
    same margin.
    """
    caught = False
    for others in (1, 2, 3, 5, 8):
        joined, without = found_rate(others + 1, 3, words), found_rate(others, 3, words)
        loose = (0.0, 0.0) if caught else (found_rate(others + 1, 2, words), found_rate(others, 2, words))
        for epsilon in (0.1, 0.5, 1.0):
            factor, bound = math.exp(epsilon), trie_delta(epsilon, Ballot(0.5, 3), 1, words)
            margin = 0.0118 * (1 + factor)
            assert joined - factor * without <= bound + margin
            assert (1 - without) - factor * (1 - joined) <= bound + margin
            caught |= loose[0] - factor * loose[1] > bound + margin
    assert caught
