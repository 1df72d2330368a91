"""Tests of rankings, which are correct up to the noise. Every user counts once and in full for each gram."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxpop as vp
from naive.counts import holders
from support.corpora import corpus_of
from support.exact import exact_users
from support.look import read_engine
from support.strategies import written_users
from voxpop.errors import BudgetError, InputError, ReleaseError
from voxpop.mechanisms.counts.mechanism import TopMechanism
from voxpop.privacy.decisions import GumbelNoise
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.holders import UNIT
from voxpop.release.saving import checksum

pytestmark = pytest.mark.usefixtures("fixed_secrets")

BUDGET = vp.Budget(1, 1e-8)
GRAMS = st.lists(st.lists(st.sampled_from("abcdx"), min_size=1, max_size=4).map(tuple), min_size=1, max_size=25)


def counted(users, release):
    """Return the exact numbers of users to which a ranking adds noise."""
    return exact_users(corpus_of(users), release) / UNIT


@given(users=written_users(), grams=GRAMS)
@settings(max_examples=150)
def test_every_user_counts_once_and_in_full(release_of, users, grams):
    """For any data and grams of any length, noise is added to the exact numbers of users."""
    release = release_of(grams)
    expected = holders(users, list(release), [10**9] * max(map(len, grams)))
    assert counted(users, release).tolist() == [expected[gram] for gram in release]


def farthest(users, release, extra):
    """Return the largest change of a single count by one user."""
    return float(np.abs(counted([*users, extra], release) - counted(users, release)).max(initial=0.0))


@given(users=written_users(), grams=GRAMS, extra=written_users(users=1))
def test_one_user_increases_every_count_by_at_most_one(release_of, users, grams, extra):
    """Each count increases by 0 or 1, as the bound on picks assumes. The test uses the real walks."""
    release = release_of(grams)
    moved = counted([*users, extra[0]], release) - counted(users, release)
    assert ((moved == 0) | (moved == 1)).all()


def test_a_walk_that_counts_occurrences_is_detected(release_of, monkeypatch):
    """With this planted fault, each word of a user counts five times."""
    from voxpop.privacy.gate import counts as holders_module

    class Occurrences(holders_module.HolderShares):
        """A share of one for each occurrence of a word."""

        def add(self, histogram, items, starts):
            """Count each user five times."""
            np.add.at(histogram, items, 5 * UNIT)

    monkeypatch.setattr(holders_module, "HolderShares", Occurrences)
    assert farthest([[["a"]]], release_of([("a",)]), [["a"]]) > 1


def test_the_items_with_the_most_users_are_ranked(release_of):
    """The first ten of a hundred words are far above the rest (false alarm below 1e-9, as the plan states)."""
    words = [f"w{place:02}" for place in range(100)]
    rows = [(user, words[: 10 if user % 10 else 100]) for user in range(20_000)]
    corpus = read_engine(pl.DataFrame(rows, schema=["who", "what"], orient="row"), user="who", items="what")
    ranking = release_of((word,) for word in words).top(corpus, BUDGET, k=10)
    assert ranking.plan.behind(1 - 1e-9) < 18_000
    assert sorted(ranking) == [(word,) for word in words[:10]]
    assert len(ranking) == 10


def test_all_items_are_ranked_if_k_is_larger(release_of):
    """An empty release has an empty ranking."""
    corpus = corpus_of([[["a", "b"]]] * 500 + [[["b"]]] * 4000)
    ranking = release_of([("a",), ("b",), ("a", "b")]).top(corpus, vp.Budget(4, 1e-6), k=99)
    assert ranking.to_list()[0] == ("b",)
    assert sorted(ranking.places.tolist()) == [0, 1, 2]
    nothing = release_of([]).top(corpus, BUDGET, k=5)
    assert (len(nothing), nothing.to_list(), nothing.to_polars().height, nothing.plan.behind()) == (0, [], 0, 0.0)


def test_every_gram_gets_fresh_noise(release_of):
    """Words without users are in random order, so two rankings differ.

    A seeded ranking is repeatable and marked as not private.
    """
    corpus, release = corpus_of([[["a"]]]), release_of((f"x{place}",) for place in range(50))
    orders = [release.top(corpus, BUDGET, k=50).places.tolist() for _ in range(2)]
    assert orders[0] != orders[1] != sorted(orders[1])
    seeded = [release.top(corpus, BUDGET, k=50, seed=3) for _ in range(2)]
    assert seeded[0].places.tolist() == seeded[1].places.tolist()
    assert not seeded[0].guarantee.private
    assert not seeded[0].total.adaptive.private


def test_listed_and_unlisted_parts_share_no_noise(release_of):
    """Every listed gram has the noise of its place on the list, even if parts of longer grams precede it."""
    release = release_of([("b",), ("c", "d")])
    ranked = release.top(corpus_of([]), vp.Budget(1, 1e-6), k=2, seed=4)
    secret, rate, zero = Secret.from_seed(4), ranked.plan.proof.rate, np.zeros(1, np.int64)
    noise = [GumbelNoise(rate, UNIT, secret, f"noise/top {length}")(zero, zero)[0] for length in (1, 2)]
    assert ranked.places.tolist() == np.argsort(-np.array(noise)).tolist()


def test_a_ranking_is_written_as_tables():
    """Rows are in order, keys keep their types, and the column of places is renamed if a key column has its name."""
    rows = {"who": list(range(9000)), "place": [7] * 6000 + [5] * 3000}
    corpus = read_engine(pl.DataFrame(rows), user="who", items="place")
    keys = vp.papers.OptimalSelection().release(corpus, BUDGET)
    ranking = keys.top(corpus, BUDGET, k=2)
    assert ranking.to_list() == [7, 5]
    assert list(ranking.each_gram()) == [("7",), ("5",)]
    assert ranking.to_arrow().to_pydict() == {"place": [7, 5], "noisy_place": [1, 2]}
    assert pl.DataFrame(ranking).equals(ranking.to_polars())
    assert "2 of 2" in repr(ranking)
    assert "with the most users" in ranking._repr_html_()


def test_the_largest_counts_cost_no_budget(release_of):
    """The first grams are computed from the released counts, which is post-processing."""
    corpus = corpus_of([[["a", "b"]]] * 3000 + [[["b"]]] * 3000)
    counts = release_of([("a",), ("b",), ("a", "b")]).count(corpus, BUDGET)
    assert counts.top(1) == counts.to_list()[:1]
    assert next(gram for gram, _ in counts.top(9)) == ("b",)
    with pytest.raises(InputError, match="`k`"):
        counts.top(0)


def test_the_plan_reads_no_data_and_states_its_guarantee(release_of):
    """Fewer places require less noise, the spend is within the budget, and the text describes the ranking."""
    release = release_of((f"w{place}",) for place in range(500))
    plans = [TopMechanism(k).plan(BUDGET, release) for k in (1, 10, 500, 5000)]
    assert [plan.proof.picks for plan in plans] == [1, 10, 500, 500]
    assert plans[0].error < plans[1].error < plans[2].error == plans[3].error
    assert all(plan.delta_spent <= 1e-8 and plan.guarantee == vp.Guarantee(1, 1e-8) for plan in plans)
    assert plans[0].behind(0.5) < plans[0].behind() < plans[1].behind()
    assert "10 grams of 500" in str(plans[1]) == repr(plans[1])
    with pytest.raises(InputError, match="`probability`"):
        plans[0].behind(1.0)


def test_a_ledger_is_charged(release_of, tmp_path):
    """The ledger has one entry for the ranking."""
    account = vp.Ledger(tmp_path / "team.ledger").open("words", vp.Budget(3, 1e-6), create=True)
    release_of([("a",)]).top(corpus_of([[["a"]]]), BUDGET, k=1, ledger=account)
    assert [entry.mechanism for entry in account.entries] == ["top"]


def test_the_result_is_saved_in_the_folder_of_the_release(release_of, tmp_path):
    """A loaded ranking equals the saved one, and remains if its release is saved again.

    Paid results are not replaced by default.
    """
    corpus, release = corpus_of([[["a", "b"]]] * 100), release_of([("a",), ("b",), ("a", "b")])
    ranking = release.top(corpus, BUDGET, k=2)
    release.save(tmp_path / "words")
    ranking.save(tmp_path / "words")
    release.count(corpus, BUDGET).save(tmp_path / "words")
    release.save(tmp_path / "words")
    again = vp.load(tmp_path / "words", vp.Top)
    assert again.grams == release
    assert again.to_list() == ranking.to_list()
    assert again.guarantee == ranking.guarantee
    # The folder also contains counts, which cost the same epsilon.
    assert again.total.adaptive.epsilon == ranking.total.adaptive.epsilon + BUDGET.epsilon
    assert again.plan.to_dict() == ranking.plan.to_dict()
    release_of([("c",)]).save(tmp_path / "other")
    with pytest.raises(ReleaseError, match="another release"):
        ranking.save(tmp_path / "other")
    with pytest.raises(ReleaseError, match="contains no rankings"):
        vp.load(tmp_path / "other", vp.Top)
    with pytest.raises(ReleaseError, match="already contains rankings, which cost a budget"):
        ranking.save(tmp_path / "words")
    with pytest.raises(ReleaseError, match="a release and counts and rankings, which"):
        release_of([("c",)]).save(tmp_path / "words")


@pytest.mark.parametrize("name", ["top.parquet", "top.json"])
def test_damaged_rankings_are_rejected(release_of, tmp_path, name):
    """A changed byte in a saved ranking is detected."""
    release = release_of([("a",), ("b",)])
    release.save(tmp_path / "words")
    release.top(corpus_of([[["a"]]] * 9), BUDGET, k=2).save(tmp_path / "words")
    content = (tmp_path / "words" / name).read_bytes()
    (tmp_path / "words" / name).write_bytes(content[:-9] + b"x" + content[-8:])
    with pytest.raises(ReleaseError):
        vp.load(tmp_path / "words", vp.Top)


@pytest.mark.parametrize("places", [[0, 0], [0, 2], [-1]])
def test_impossible_places_are_rejected(release_of, tmp_path, places):
    """Places of rows that do not exist or that occur twice are rejected even with correct checksums."""
    release = release_of([("a",), ("b",)])
    release.save(tmp_path / "words")
    ranking = release.top(corpus_of([[["a"]]] * 9), BUDGET, k=2)
    with pytest.raises(ReleaseError, match="changed"):  # The report includes the ranking, so `save` reads it.
        replace(ranking, places=np.array(places)).save(tmp_path / "words")
    ranking.save(tmp_path / "words")
    table, record = tmp_path / "words" / "top.parquet", tmp_path / "words" / "top.json"
    before = checksum(table.read_bytes())
    pl.DataFrame({"place": places}, schema={"place": pl.Int64}).write_parquet(table)
    record.write_text(record.read_text().replace(before, checksum(table.read_bytes())))
    with pytest.raises(ReleaseError, match=r"the rankings in .* was changed"):
        vp.load(tmp_path / "words", vp.Top)


@pytest.mark.parametrize("k", [0, -1, 1.5, "3", True, 10**9])
def test_invalid_numbers_are_rejected(k):
    """The number must be a whole number of at least 1."""
    with pytest.raises(InputError, match="`k`"):
        TopMechanism(k)


def test_unsuitable_budgets_grams_and_tables_are_rejected(release_of):
    """A budget without delta, phrases of items, and a table instead of a corpus are rejected."""
    release = release_of([("a",), ("a", "b")])
    with pytest.raises(BudgetError, match="delta"):
        TopMechanism().plan(vp.Budget(1), release)
    items = read_engine(pl.DataFrame({"who": range(20), "what": ["tea"] * 20}), user="who", items="what")
    with pytest.raises(InputError, match="order"):
        release.top(items, BUDGET, k=1)
    with pytest.raises(InputError, match=r"voxpop\.read"):
        release.top(pl.DataFrame({"who": [1]}), BUDGET, k=1)
