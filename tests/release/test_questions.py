"""Tests of queries. Tests that public queries depend only on the release, and that private results are marked."""

import datetime
import re
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from support.corpora import corpus_of
from voxpop.engine.local.exact import PRIVATE, counted, users_of
from voxpop.errors import InputError
from voxpop.release.release import Release
from voxpop.release.table import table_of_lists

BUDGET = vp.Budget(4, 1e-7)
SAID = pl.DataFrame({"who": range(3000), "what": ["Get it, please", "apt", "café noir"] * 1000})
documents = st.lists(st.lists(st.lists(st.sampled_from("abc"), max_size=6), max_size=3), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def said():
    return vp.read(SAID, user="who", text="what")


@pytest.fixture(scope="module")
def words(said):
    return vp.Items(max_items_per_user=100).release(said, BUDGET)


@pytest.fixture(scope="module")
def phrases(said):
    return vp.NGrams(max_length=2, max_phrases_per_user=100).release(said, BUDGET)


def grams_of(user, length):
    """Return the grams of a user, including repeated grams."""
    return [tuple(text[at : at + length]) for text in user for at in range(len(text) - length + 1)]


@given(documents, st.sets(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3).map(tuple), min_size=1))
def test_counts_of_users_and_occurrences_equal_those_of_plain_python(users, listed):
    """The numbers are compared for all grams and for listed grams."""
    held = corpus_of(users)
    names = {word: number for number, word in enumerate(held.vocabulary.to_pylist())}
    by_length = {}
    for length in sorted({len(gram) for gram in listed}):
        grams = sorted(gram for gram in listed if len(gram) == length)
        by_length[length] = np.array([[names.get(token, -1) for token in gram] for gram in grams], np.int64)
    for found in counted(held, by_length):
        have = Counter(gram for user in users for gram in set(grams_of(user, found.length)))
        occurrences = [gram for user in users for gram in grams_of(user, found.length)]
        theirs = sorted(gram for gram in listed if len(gram) == found.length)
        assert sorted(found.users[found.users > 1]) == sorted(n for n in have.values() if n > 1)
        assert found.listed.tolist() == [have[gram] for gram in theirs]
        assert found.covered == sum(gram in listed for gram in occurrences)
        if found.length == 1:
            assert found.occurrences == len(occurrences)
    for gram in listed:
        assert users_of(held, gram) == sum(gram in grams_of(user, len(gram)) for user in users)


def test_an_explanation_contains_the_tokens_of_an_item(words):
    """The tokens are in the normal form of the tokenizer."""
    found = words.explain("Apt-GET")
    assert (found.tokens, found.released) == (("apt", "get"), False)
    assert "Released alone: apt, get." in str(found)
    assert words.explain("CAFÉ").released
    assert words.explain("CAFÉ").tokens == ("café",)
    nothing = words.explain("!!!")
    assert (nothing.tokens, nothing.needed) == ((), ())
    assert "finds no token" in str(nothing)


def test_an_explanation_lists_similar_released_items(words):
    """The explanation of a missing item lists released items that differ only in accents, case or punctuation."""
    assert words.explain(["Cafe"]).similar == (("café",),)
    assert words.explain("cafe").similar == (("café",),)
    assert words.explain("zsh").similar == ()
    assert words.explain("apt").similar == ()


def test_an_explanation_names_the_missing_part_of_a_phrase(phrases):
    """For a phrase that is too long, the explanation also recommends a larger `max_length`."""
    assert phrases.explain("get it").released
    assert "nobody" not in str(phrases.explain("get it"))
    assert "expected to have no user (max_spurious_share)" in str(phrases.explain("get it"))
    found = str(phrases.explain("get zsh please"))
    assert "Its part zsh was not released" in found
    assert "Raise max_length" in found
    assert "All its parts were released" in str(phrases.explain("please get"))


def test_users_needed_equal_the_numbers_of_the_plan(words, phrases, tmp_path):
    """The numbers of users needed equal those of the plan, even if the plan of a saved release is computed again."""
    plan = vp.Items(max_items_per_user=100).plan(BUDGET)
    wanted = [plan.users_needed(each, per_user=10) for each in (0.5, 0.95)]
    words.save(tmp_path / "words")
    for release in (words, vp.load(tmp_path / "words", vp.Release)):
        row = release.explain("zsh").needed[1]
        assert [row["per_user"], row["users_50"], row["users_95"]] == [10, *wanted]
    plan = vp.NGrams(max_length=2, max_phrases_per_user=100).plan(BUDGET)
    assert phrases.explain("a b").needed[0]["users_50"] == plan.users_needed(0.5, length=2, per_user=1)


def test_explanations_of_heavy_hitters_describe_votes(said):
    """The explanation mentions the length of the word, the single vote of each user, and the excluded words."""
    found = vp.HeavyHitters(max_length=4, exclude=["tea"]).release(said, BUDGET)
    text = str(found.explain("long"))
    assert "has 4 characters and an end mark" in text
    assert "excludes a public list" in text
    assert "most frequent word" in text
    assert [row["per_user"] for row in found.explain("apt").needed] == [None]


def test_a_minimum_of_users_is_explained(said):
    """The explanation contains `min_users`."""
    release = vp.Items(max_items_per_user=20, min_users=50).release(said, BUDGET)
    assert "fewer than 50 users have (min_users)" in str(release.explain("zsh"))


@pytest.mark.parametrize("given_as", [("NL", datetime.date(2026, 11, 22)), ("NL", "2026-11-22")])
def test_keys_are_explained_as_values_or_as_texts(given_as):
    """A key can be given as the values of its columns, or with values spelled as on the command line."""
    table = pl.DataFrame({"who": range(2000), "country": "NL", "day": datetime.date(2026, 11, 22)})
    release = vp.Items(max_items_per_user=1).release(vp.read(table, user="who", items=["country", "day"]), BUDGET)
    assert release.explain(given_as).released
    missing = release.explain(("DE", "2026-11-22"))
    assert not missing.released
    assert "country (string), day (date32[day])" in str(missing)
    for wrong in ("NL", ("NL", "yesterday"), ("NL", "2026-11-22", 1)):
        assert "not a value of the columns" in str(release.explain(wrong))


def test_plans_of_other_classes_are_explained_without_numbers(release_of):
    """If a plan cannot be computed again, the explanation contains no number of users."""
    found = release_of("tea").explain("milk")
    assert "cannot compute the plan again" in str(found)
    assert found.needed == ()


def test_an_explanation_contains_private_numbers_only_on_request(words, said):
    """With the corpus, an explanation contains the number of users.

    This number is marked as private. It is rounded unless exact numbers are requested.
    """
    assert "PRIVATE" not in str(words.explain("apt"))
    assert "private" not in words.explain("apt").to_dict()
    found = words.explain("apt", said)
    assert f"{PRIVATE}\n  Users of the data who have it: about 1,000." in str(found)
    assert found.to_dict()["private"].startswith(PRIVATE)
    assert "fewer than 100" in words.explain("zsh", said).private
    assert words.explain("zsh", said, exact=True).private == "Users of the data who have it: 0."
    other = vp.read(SAID, user="who", text="what", tokenizer="whitespace")
    for wrong, message in ((other, "read like the data of the release"), (SAID, "must be an object that voxpop.read")):
        with pytest.raises(InputError, match=message):
            words.explain("apt", wrong)


def test_a_summary_is_private_and_rounded(said):
    """The summary is marked as private. It contains exact numbers and tokens only on request."""
    text = str(said.summary())
    assert text.startswith(PRIVATE)
    assert "about 3,000" in text
    assert "apt" not in text
    exact = said.summary(exact=True, frequent=1)
    assert exact.figures["users"] == "3,000"
    assert exact.figures["tokens"] == "6,000"
    assert exact.figures["maximum per user"] == "3"
    assert exact.frequent == (("apt", "1,000 users"),)
    assert exact.to_dict()["private"] == PRIVATE
    with pytest.raises(InputError, match="`frequent` must be"):
        said.summary(frequent=-1)


def test_items_and_empty_data_have_a_summary():
    """A summary of items has no figures about texts.

    A token with the same name as a figure does not replace the figure.
    """
    table = pl.DataFrame({"who": [1, 1, 2], "what": ["users", "users", "tea"]})
    found = vp.read(table, user="who", items="what").summary(exact=True, frequent=2)
    assert "texts or sequences" not in found.figures
    lines = [line.split() for line in str(found).splitlines()]
    assert ["users", "2"] in lines
    assert ["users", "1", "users"] in lines
    nothing = vp.read(table.head(0), user="who", text="what").summary(exact=True, frequent=3)
    assert nothing.figures["users"] == "0"


def test_settings_are_compared_without_data():
    """The comparison has a row for each setting, budget, length and number of items, with the numbers of the plans."""
    budgets = [vp.Budget(1, 1e-7), BUDGET]
    found = vp.compare(
        {"few": vp.Items(max_items_per_user=20), "two": vp.NGrams(max_length=2, max_phrases_per_user=20)}, budgets
    )
    assert found.group_by("name").len().sort("name").rows() == [("few", 6), ("two", 12)]
    row = found.filter(name="few", per_user=10).row(1, named=True)
    assert row["users_50"] == vp.Items(max_items_per_user=20).plan(budgets[1]).users_needed(0.5, per_user=10)
    plan = vp.HeavyHitters().plan(BUDGET)
    assert vp.compare([plan])["users_50"].to_list() == [plan.users_needed(0.5)]
    assert vp.compare([plan])["name"].to_list() == [repr(vp.HeavyHitters())]


def test_releases_are_compared_by_their_items(release_of):
    """Each pair of releases has a row with the number of common items."""
    found = vp.compare({"one": release_of("a", "b"), "two": release_of("b", "c", "d"), "none": release_of()})
    assert found.select("first", "second", "both", "share").rows() == [
        ("one", "two", 1, 0.25),
        ("one", "none", 0, 0.0),
        ("two", "none", 0, 0.0),
    ]


def test_invalid_comparisons_are_rejected(release_of):
    """Mixed, missing and unsuitable arguments raise errors that contain the next step."""
    for wrong, budgets, message in (
        ([], None, "must not be empty"),
        ("text", None, "must not be empty"),
        ([vp.Items()], None, "Give budgets="),
        ([vp.Items(), release_of("a")], BUDGET, "or only releases"),
        ([release_of("a")], BUDGET, "Remove it"),
        ([vp.Sequences(alphabet=["a"])], vp.Budget(1), "does not compute the number of users that an item needs"),
        ([vp.Items()], [4], "voxpop.Budget"),
        ([4], BUDGET, "got a value of type int"),
    ):
        with pytest.raises(InputError, match=message):
            vp.compare(wrong, budgets)


def test_an_evaluation_counts_frequent_items_and_coverage(said, words):
    """The evaluation is marked as private and agrees with manual counts."""
    grams = table_of_lists([["apt"], ["nobody"], ["café", "noir"]])
    release = Release(grams, words.plan, words.guarantee, "words")
    found = vp.evaluate(release, said, users=[2, 1001])
    assert str(found).startswith(PRIVATE)
    assert found.facts["released that no user has"] == 1
    assert found.facts["share of occurrences covered, length 1"] == pytest.approx(1000 / 6000)
    assert found.facts["share of occurrences covered, length 2"] == pytest.approx(1000 / 3000)
    first = {"length": 1, "users": 2, "items": 6, "released": 1, "share": 1 / 6}
    assert found.rows[0] == first
    assert found.rows[1]["items"] == 0
    assert found.to_polars().height == 4
    assert found.to_dict()["private"] == PRIVATE


def test_counts_and_rankings_are_evaluated(said, words):
    """The errors of counts agree with their standard error, and the first places of this ranking are correct."""
    counts = words.count(said, vp.Budget(1, 1e-8), counted_in_full=10, seed=1)
    facts = vp.evaluate(counts, said).facts
    assert facts["counts"] == len(words)
    assert facts["largest error in users"] < 6 * counts.error
    ranking = words.top(said, vp.Budget(1, 1e-8), k=2, seed=1)
    assert vp.evaluate(ranking, said).facts["share of the true first places"] == 1


def test_empty_results_are_evaluated(said, words):
    """A release without items covers nothing."""
    nothing = Release(table_of_lists([]), words.plan, words.guarantee, "words", words.keys)
    assert vp.evaluate(nothing, said, users=[2]).facts == {
        "released": 0,
        "released that no user has": 0,
        "share of occurrences covered, length 1": 0.0,
    }


def test_objects_that_are_not_results_are_not_evaluated(said):
    """An object that is not a result and a number of users below 2 raise errors."""
    with pytest.raises(InputError, match="must be one of Release"):
        vp.evaluate("words", said)
    with pytest.raises(InputError, match="`users` must be"):
        vp.evaluate(vp.Items(max_items_per_user=100).release(said, BUDGET), said, users=[1])


def test_no_mechanism_imports_exact_figures():
    """Only queries of the data owner import the module with exact figures, so releases do not depend on it."""
    users = {
        path.name
        for path in Path(vp.__file__).parent.rglob("*.py")
        if re.search(r"engine\.local(\.| import )exact", path.read_text(encoding="utf-8"))
    }
    assert users == {"data.py", "explaining.py", "questions.py"}


@pytest.mark.parametrize("wrong", [7, None, ["a", 1], b"apt"])
def test_items_of_other_types_are_rejected(words, wrong):
    """The error lists the allowed types. An empty item is explained without a limit."""
    with pytest.raises(InputError, match="`item` must be a text or a list of tokens"):
        words.explain(wrong)
    assert "limit" not in str(words.explain(""))
    assert "more than 1 item contributes" in str(
        vp.Items(max_items_per_user=1).release(corpus_of([[["a"]]]), BUDGET).explain("b")
    )
