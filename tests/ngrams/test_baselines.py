"""Tests of the baselines of the DPNE paper, which are set unions over all grams without pruning."""

import pytest
from benchmarks.baselines.all_grams import AllGrams, dpsu_all, dpsu_even, dpsu_single
from benchmarks.evaluation import (
    private_gram_counts,
    private_missing_grams,
    private_ngram_coverage,
    private_spurious_share,
    released_by_length,
)

import voxpop as vp
from naive import ngrams as naive_ngrams
from support.corpora import corpus_of

USERS = [[["a", "b", "a"], ["b", "a", "b", "c"]], [["c"], ["a", "b", "a"]], []]


def naive_counts(users, length):
    """Count the users of each gram with sets."""
    counts = {}
    for user in users:
        for gram in set(naive_ngrams.grams_of(user, length)):
            counts[gram] = counts.get(gram, 0) + 1
    return counts


def test_counts_of_grams_equal_the_reference_implementation():
    """The compared grams have lengths 1 to 4, and no gram spans two documents."""
    frame = private_gram_counts(corpus_of(USERS), 4)
    for length in range(1, 5):
        part = frame.filter(frame["length"] == length)
        assert dict(zip(map(tuple, part["gram"]), part["users"], strict=True)) == naive_counts(USERS, length)


def test_baselines_release_the_common_grams(letters, budget):
    """All three baselines release a phrase with many users, but no word of a single user."""
    grams = AllGrams.of(letters, 3)
    phrase = ("see", "you", "soon")
    for release in (
        dpsu_all(grams, budget, 20, 1),
        dpsu_even(grams, budget, 20, 1),
        dpsu_single(grams, budget, 3, 20, 1),
    ):
        assert phrase in release
        assert not any(word.startswith("number") for gram in release for word in gram)
        assert release.guarantee == vp.Guarantee(4, 1e-7, private=False)
    assert {len(gram) for gram in dpsu_single(grams, budget, 2, 20, seed=1)} == {2}


@pytest.mark.jit
def test_coverage_and_spurious_share_equal_the_exact_values(letters, budget):
    """All grams with 100 users are covered, and released grams without users count as spurious."""
    release = vp.NGrams(max_length=3, max_phrases_per_user=20).release(letters, budget, seed=1)
    coverage = private_ngram_coverage(letters, release, [100, 10**6], 3)
    assert coverage.filter(coverage["k"] == 100)["covered"].to_list() == [1.0, 1.0, 1.0]
    assert coverage.filter(coverage["k"] == 10**6)["covered"].to_list() == [None] * 3
    held = {gram for length in (1, 2, 3) for gram in naive_counts(_documents(letters), length)}
    share = len(set(release) - held) / len(release)
    assert private_spurious_share(letters, release, 3) == pytest.approx(share)
    noisy = vp.papers.DPNE(max_length=3, max_phrases_per_user=20, max_spurious_share=0.5).release(
        letters, budget, seed=1
    )
    share = len(set(noisy) - held) / len(noisy)
    assert private_spurious_share(letters, noisy, 3) == pytest.approx(share)
    assert share > 0


def test_missing_mass_equals_the_reference_implementation(letters, budget):
    """The missing mass is correct for each length and for all lengths together."""
    release = vp.NGrams(max_length=3, max_phrases_per_user=20).release(letters, budget, seed=1)
    counts = [naive_counts(_documents(letters), length) for length in (1, 2, 3)]
    missing = [sum(users for gram, users in each.items() if gram not in release) for each in counts]
    whole = [sum(each.values()) for each in counts]
    expected = [part / total for part, total in zip((*missing, sum(missing)), (*whole, sum(whole)), strict=True)]
    assert private_missing_grams(letters, release, 3) == pytest.approx(expected)
    assert 0 < expected[-1] < 1


@pytest.mark.jit
def test_releases_are_compared_by_length(letters, budget):
    """The table has one row per release and one column per length, up to the longest length."""
    long, short = (vp.NGrams(max_length=n, max_phrases_per_user=20).release(letters, budget, seed=1) for n in (3, 1))
    table = released_by_length({"long": long, "short": short})
    assert table.columns == ["name", "1", "2", "3", "total"]
    assert table.row(0)[4] == len(long) == sum(table.row(0)[1:4])
    assert table.row(1) == ("short", len(short), 0, 0, len(short))


def _documents(corpus):
    from support.look import corpus_documents

    return corpus_documents(corpus)
