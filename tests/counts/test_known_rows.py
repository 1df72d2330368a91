"""Tests of counts with a public list. Every listed item has a noisy row, whether or not the item was released."""

import hashlib
import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from naive.counts import holders
from support.corpora import corpus_of
from support.exact import exact_counts
from voxpop.cli import main
from voxpop.mechanisms.counts.mechanism import CountsMechanism
from voxpop.mechanisms.counts.releasing import to_count
from voxpop.privacy.weightings.holders import UNIT
from voxpop.release.known import KnownItems
from voxpop.release.verifying import verify

pytestmark = pytest.mark.usefixtures("fixed_secrets")

BUDGET = vp.Budget(1, 1e-8)
KEYS = pl.DataFrame({"country": ["NL", "SE", "XX"], "year": [2024, 2025, 1999]})


@pytest.fixture(scope="module")
def table():
    """Return rows with two frequent keys and one key of a single user."""
    rows = [(who, ["NL", "SE"][who % 2], 2024 + who % 2) for who in range(4000)] + [(9999, "MT", 2024)]
    return pl.DataFrame(rows, schema=["who", "country", "year"], orient="row")


@pytest.fixture(scope="module")
def corpus(table):
    """Return the corpus of the keys."""
    return vp.read(table, user="who", items=["country", "year"])


def random_neighbours(rng):
    """Draw a release, a list, a limit, and a collection with its neighbour.

    One listed item belongs only to the extra user, and another listed item belongs to no user.
    """
    words = "abcdef"[: rng.integers(2, 7)]
    others = [[[words[i] for i in rng.integers(0, len(words), rng.integers(1, 20))]] for _ in range(rng.integers(1, 4))]
    extra = [[*(words[i] for i in rng.integers(0, len(words), 12)), "only", "unlisted"]]
    released = sorted({(words[i],) for i in rng.integers(0, len(words), 3)})
    listed = KnownItems.of(["only", "nobody", *(words[i] for i in rng.integers(0, len(words), rng.integers(0, 6)))])
    return released, listed, int(rng.integers(1, 5)), others, extra


def farthest(release_of, rng, prepared=to_count):
    """Return the distance of two neighbours' counts relative to the sensitivity, or infinity if their rows differ."""
    grams, listed, limit, others, extra = random_neighbours(rng)
    plan = CountsMechanism(limit, listed).plan(BUDGET, release_of(grams))
    pairs = [prepared(plan, corpus_of(each)) for each in ([*others, extra], others)]
    if pairs[0].grams != pairs[1].grams:
        return np.inf
    found = [exact_counts(each.data, each.grams, plan.limits) for each in pairs]
    return np.linalg.norm(found[0] - found[1]) / UNIT / plan.sensitivity


def search(release_of, prepared=to_count):
    rng = np.random.default_rng(5)
    return max(farthest(release_of, rng, prepared) for _ in range(150))


@pytest.mark.jit
def test_neighbours_have_the_same_rows_and_are_within_the_sensitivity(release_of):
    """The distance of the worst of 150 pairs is close to the sensitivity."""
    assert 0.98 < search(release_of) <= 1.0


def test_the_search_detects_a_list_that_depends_on_the_data(release_of):
    """The mutant counts only listed items that have a user."""

    def mutant(plan, data):
        found = to_count(plan, data)
        seen = exact_counts(data, found.grams, plan.limits) > 0
        return found._replace(
            grams=release_of(gram for gram, used in zip(found.grams.each_gram(), seen, strict=True) if used)
        )

    assert search(release_of, mutant) == np.inf


def test_weights_equal_the_reference_implementation(release_of):
    """Rows with and without users have the weights of the reference implementation."""
    rng = np.random.default_rng(8)
    for _ in range(40):
        grams, listed, limit, others, extra = random_neighbours(rng)
        users = [*others, extra]
        counted = to_count(CountsMechanism(limit, listed).plan(BUDGET, release_of(grams)), corpus_of(users)).grams
        rows = list(counted.each_gram())
        assert set(rows) == {*grams, *((item,) for item in listed.items.to_pylist())}
        found = exact_counts(corpus_of(users), counted, [limit]) / UNIT
        expected = holders(users, rows, [limit])
        assert np.allclose(found, [expected[gram] for gram in rows], rtol=0, atol=len(users) * 2 / UNIT)


def test_every_listed_key_has_a_row(corpus):
    """Keys without users have noise around 0, and the unlisted key of one user has no row."""
    release = vp.Items(known=KEYS).release(corpus, BUDGET)
    counts = release.count(corpus, BUDGET, known=KEYS, counted_in_full=1)
    rows = {(row["country"], row["year"]): row for row in counts.to_arrow().to_pylist()}
    assert set(rows) == {("NL", 2024), ("SE", 2025), ("XX", 1999)}
    assert [rows[key]["released"] for key in sorted(rows)] == [True, True, False]
    assert abs(rows["NL", 2024]["users"] - 2000) < 8 * counts.error
    assert abs(counts["XX", 1999]) < 8 * counts.error
    assert dict(counts)["XX", 1999] == counts["XX", 1999]
    with pytest.raises(KeyError):
        _ = counts["MT", 2024]


def test_items_without_users_get_noise(release_of):
    """Over 300 of 400 counts differ from 0, and the mean of all 400 is near 0 (false alarm below 1e-10)."""
    listed = [f"x{number}" for number in range(400)]
    counts = release_of([("a",)]).count(corpus_of([[["a"]]]), BUDGET, known=listed, counted_in_full=4)
    zeros = counts.users[~counts.released]
    assert zeros.size == 400
    assert np.count_nonzero(zeros) > 300
    assert abs(zeros.mean()) < 7 * counts.error / 20


def test_phrases_keep_their_counts(release_of):
    """A list adds words to the counts of a release of phrases."""
    corpus = corpus_of([[["a", "b"]]] * 3000 + [[["b"]]] * 1000)
    counts = release_of([("b",), ("a", "b")]).count(corpus, BUDGET, known=["z", "a"])
    assert set(dict(counts.each_gram())) == {("a",), ("b",), ("z",), ("a", "b")}
    assert dict(zip(counts.rows.each_gram(), counts.released.tolist(), strict=True)) == {
        ("a",): False,
        ("b",): True,
        ("z",): False,
        ("a", "b"): True,
    }


def test_counts_with_a_list_are_saved_and_loaded(corpus, tmp_path):
    """The folder contains all rows and can be verified, and its report lists only released items."""
    release = vp.Items(known=KEYS).release(corpus, BUDGET)
    counts = release.count(corpus, BUDGET, known=KEYS)
    release.save(tmp_path / "keys")
    counts.save(tmp_path / "keys")
    again = vp.load(tmp_path / "keys", vp.Counts)
    assert again.to_arrow().equals(counts.to_arrow())
    assert again.plan.to_dict()["known"] == KnownItems.of(KEYS).to_dict()
    assert [each["mechanism"] for each in verify(tmp_path / "keys")["results"]] == ["items", "counts"]
    assert vp.load(tmp_path / "keys") == release


@pytest.mark.parametrize("size", [1, 100_000])
def test_verification_detects_another_size_of_the_list(corpus, tmp_path, size):
    """The limits of the plan follow from the size of the list."""
    release = vp.Items(known=KEYS).release(corpus, BUDGET)
    release.save(tmp_path / "keys")
    release.count(corpus, BUDGET, known=KEYS).save(tmp_path / "keys")
    path = Path(tmp_path / "keys" / "counts.json")
    record = json.loads(path.read_text())
    record["plan"]["known"]["size"] = size
    path.write_text(json.dumps(record))
    files = sorted(each for each in path.parent.iterdir() if each.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in files]
    (path.parent / "SHA256SUMS").write_text("".join(lines))
    with pytest.raises(vp.errors.ReleaseError):
        verify(tmp_path / "keys")


def test_errors_of_lists_precede_the_charge(corpus, tmp_path):
    """Lists of other columns or types, and lists of saved plans, are rejected before anything is charged."""
    release = vp.Items().release(corpus, BUDGET)
    account = vp.Ledger(tmp_path / "all.ledger").open("keys", vp.Budget(9, 1e-5), create=True)
    wrong = pl.DataFrame({"country": ["NL"], "year": ["last"]})
    for known, message in (
        (["NL"], "has 1 column,"),
        (wrong, "cannot contain"),
        (KnownItems.of(KnownItems.of(KEYS).to_dict()), "loaded from a file"),
    ):
        with pytest.raises(vp.errors.InputError, match=message):
            release.count(corpus, BUDGET, known=known, ledger=account)
    assert not account.entries


def test_strings_of_a_list_are_converted_to_values_of_the_columns():
    """Two spellings of a price and of a time are converted to the same key of the data, which has one row."""
    moments = [datetime(2026, 1, 1, 3)] * 3000
    rows = pl.DataFrame({"who": range(3000), "price": [Decimal("1.50")] * 3000, "at": moments, "paid": [True] * 3000})
    corpus = vp.read(rows, user="who", items=["price", "at", "paid"])
    listed = [("1.50", "2026-01-01T03:00:00", "True"), ("1.5", "2026-01-01 03:00:00", "true")]
    for release in (vp.Items().release(corpus, BUDGET), vp.Items(known=listed).release(corpus, BUDGET)):
        counts = release.count(corpus, BUDGET, known=listed, counted_in_full=1)
        assert [key for key, _ in counts] == [(Decimal("1.5"), datetime(2026, 1, 1, 3), True)]
        assert abs(counts.users[0] - 3000) < 8 * counts.error


@pytest.mark.parametrize("known", [["late"], ["1.5"], [2**70]])
def test_items_reject_a_list_of_another_type_before_the_charge(tmp_path, known):
    """A list of another type is rejected, because noise could release an item that no column contains."""
    corpus = vp.read(pl.DataFrame({"who": range(10), "year": [2024] * 10}), user="who", items="year")
    account = vp.Ledger(tmp_path / "all.ledger").open("keys", vp.Budget(9, 1e-5), create=True)
    with pytest.raises(vp.errors.InputError, match="`known`"):
        vp.Items(known=known).release(corpus, BUDGET, ledger=account)
    assert not account.entries


def test_lists_without_rows_are_rejected(release_of, tmp_path):
    """If no entry consists of one token and nothing was released, the list is rejected and nothing is charged."""
    corpus = vp.read(pl.DataFrame({"who": [1], "what": ["a pot"]}), user="who", text="what")
    empty = vp.Items(max_items_per_user=10).release(corpus, BUDGET)
    account = vp.Ledger(tmp_path / "all.ledger").open("keys", vp.Budget(9, 1e-5), create=True)
    for limit in (None, 1):
        with pytest.raises(vp.errors.InputError, match="nothing to count"):
            empty.count(corpus, BUDGET, known=["a pot", "a tea"], counted_in_full=limit, ledger=account)
    assert not account.entries


def test_a_dictionary_is_rejected_as_a_list(release_of):
    """The error for a dictionary names the type that the caller must pass instead."""
    with pytest.raises(vp.errors.InputError, match="not a dictionary"):
        release_of([("a",)]).count(corpus_of([[["a"]]]), BUDGET, known={"word": ["a"]})


def test_texts_of_a_list_are_tokenized(release_of):
    """Entries in upper case become words, and entries of several words are ignored."""
    said = pl.DataFrame({"who": range(3000), "what": ["Tea please"] * 3000})
    corpus = vp.read(said, user="who", text="what")
    counts = vp.Items().release(corpus, BUDGET).count(corpus, BUDGET, known=["TEA", "Coffee", "a pot"])
    assert sorted(gram for gram, _ in counts) == ["coffee", "please", "tea"]


def test_the_command_counts_a_list(table, tmp_path, capsys):
    """`voxpop count --known` counts all items of a file, and the plan contains the size of the list."""
    table.write_parquet(tmp_path / "rows.parquet")
    KEYS.write_csv(tmp_path / "known.csv")
    where = [str(tmp_path / "rows.parquet"), "--user", "who", "--items", "country", "--items", "year"]
    spend, known = ["--epsilon", "1", "--delta", "1e-8"], ["--known", str(tmp_path / "known.csv")]
    keys = str(tmp_path / "keys")
    assert main(["items", *where, *spend, "-o", keys]) == 0
    assert main(["plan", "count", keys, *spend, *known]) == 0
    assert "each of 3 known items" in capsys.readouterr().out
    assert main(["count", keys, *where, *spend, *known]) == 0
    assert "Counted 3 grams" in capsys.readouterr().out
    assert main(["verify", keys]) == 0


def test_listed_items_without_users_do_not_lower_the_limit(release_of):
    """The limit is chosen for released words, so a long list of other items does not affect their accuracy."""
    words = [f"w{number:02}" for number in range(40)]
    corpus, release = corpus_of([[words]] * 3000), release_of((word,) for word in words)
    limits = [
        release.count(corpus, BUDGET, known=known).plan.limits for known in (None, [f"x{n}" for n in range(5000)])
    ]
    assert limits[0] == (40,)
    assert limits[1][0] >= 40
