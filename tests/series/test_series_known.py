"""Tests of a series with a public list, including items without users, items of one user, and the saved list."""

import json
from dataclasses import replace
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from naive.nights import Nights
from support.series_nights import begin_night, begun, gate_of, read_night, weights_of
from support.streams import WORDS, rows_of, some_plan
from voxpop.errors import InputError, InternalError
from voxpop.mechanisms.series import plan as planning
from voxpop.mechanisms.series.plan import SeriesPlan, numbers_of_list
from voxpop.mechanisms.series.series import Series
from voxpop.privacy.certificate import check
from voxpop.privacy.gate import nights as gated
from voxpop.privacy.passes import Certificate
from voxpop.privacy.secret import Secret
from voxpop.privacy.upcrossing import night_tail, proved_levels
from voxpop.release.saving import record_of

BUDGET = vp.Budget(3, 1e-6)
NIGHTS, SIZE, SHARE = 8, 200, 0.3
LIST = [f"n{number}" for number in range(SIZE)]


@pytest.fixture(scope="module")
def generous():
    """Return a plan with an expected share of 0.3, so that a few hundred series show a fault."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "SHARE_WITHOUT_USERS", SHARE)
        return vp.Items(known=LIST).plan_series(vp.Budget(3, 1e-4), NIGHTS)


# Tests of the share of released items without users.


def shares_of_empty(plan, held, runs):
    """Return the mean share of released items without users, by night, over series with fresh seeds.

    Args:
        plan: The plan of the series.
        held: The number of listed items that have users from the fourth night. These are the first items of the list.
        runs: The number of series.
    """
    found = np.zeros((runs, plan.mechanism.nights))
    for seed in range(runs):
        pools, gate = begun(LIST), gate_of(plan, Secret.from_seed(seed))
        for night in range(1, plan.mechanism.nights + 1):
            weights = np.zeros(SIZE, np.int64)
            if night > 3:
                weights[:held] = int(2.5 * plan.proof.sigmas[night - 1] * 2**plan.proof.bits)
            gate._read(pools, night, weights)
            out = pools.released > 0
            found[seed, night - 1] = out[held:].sum() / max(1, out.sum())
    return found.mean(axis=0)


def test_the_share_of_items_without_users_is_at_most_the_stated_share(monkeypatch, generous):
    """On each night, the share of spurious items is at most the expected share, for lists with and without users.

    Broken variants, which use the tails of only the first night or a list size that is too small, are detected. Shares
    are between 0 and 1, so the mean of 400 series is too large by 0.17 with probability below 1e-9 (Hoeffding).
    """
    for held in (0, 5, 40):
        assert shares_of_empty(generous, held, 400).max() <= SHARE + 0.17
    real = gated.admitted_level
    known = generous.proof.known
    only = first_night(generous.proof), first_night(known)
    first = [night_tail(*only, level) for level in range(len(known.tails))]
    with monkeypatch.context() as patch:
        early = replace(known, tails=tuple(first))
        patch.setattr(gated, "admitted_level", lambda known, *given: real(early, *given))
        assert shares_of_empty(generous, 0, 40).max() > SHARE + 0.5
    with monkeypatch.context() as patch:
        small = replace(known, listed=replace(known.listed, size=SIZE // 10))
        patch.setattr(gated, "admitted_level", lambda known, *given: real(small, *given))
        assert shares_of_empty(generous, 0, 40).max() > SHARE + 0.5


def first_night(numbers):
    """Return the numbers of the first night of a certificate, or of the levels of its list."""
    cut = {name: value[:1] for name in numbers.__slots__ if isinstance(value := getattr(numbers, name), tuple)}
    return replace(numbers, **{name: value for name, value in cut.items() if name != "tails"})


def test_no_weight_depends_on_the_noise_of_items_without_users():
    """Lists with different items without users give the same scores, payments and decisions for all other items.

    The released items differ. In the broken variant, released items no longer receive weight.
    """

    def rows_by_night(seed):
        rng = np.random.default_rng(seed)
        people = ({user: [word for word in WORDS if rng.random() < 0.3] for user in range(1, 9)} for _ in range(6))
        return [rows_of(each) for each in people]

    def differing(seeds, settle=None):
        found = []
        for seed in seeds:
            both, rows = [], rows_by_night(seed)
            for kind in ("a", "b"):
                rng = np.random.default_rng(seed)
                known = [*WORDS[::2], *(f"{kind}{number}" for number in range(20))]
                plan, secret, pools = some_plan(rng, 6, 5, 2, known), Secret.from_seed(seed), begun(known)
                for night in range(1, 7):
                    begin_night(plan, pools, secret, rows[night - 1], night)
                    read_night(plan, pools, secret, night, weights_of(plan, pools, night))
                    if settle is not None:
                        settle(pools)
                words = pools.words.to_pylist()
                mine = [place for place, word in enumerate(words) if word in WORDS]
                state = {words[place]: (pools.scores[place], pools.decided[place]) for place in mine}
                both.append((state, pools.left.tolist(), [pools.released[place] for place in mine]))
            found.append([one != other for one, other in zip(*both, strict=True)])
        return np.array(found).sum(axis=0)

    def at_release(pools):
        pools.decided = np.where(pools.decided == 0, pools.released, pools.decided)

    states, payments, released = differing(range(40))
    assert states == payments == 0
    assert released > 0
    assert differing(range(10), at_release)[0] > 0


def test_tails_are_upper_bounds(generous):
    """The tails are above simulated rates. `check` rejects lower tails and levels that are not in order."""
    known, proof = generous.proof.known, generous.proof
    assert proved_levels(proof)
    for wrong in (
        replace(known, tails=tuple(0.99 * tail for tail in known.tails)),
        replace(known, tails=known.tails[::-1]),
        replace(known, lowest=known.lowest[1:]),
        replace(known, lowest=tuple(int(0.9 * each) for each in known.lowest)),
        replace(known, steps=(0, *known.steps[1:])),
        replace(known, share=1.0),
    ):
        assert not proved_levels(replace(proof, known=wrong))
        with pytest.raises(InternalError):
            check(Certificate(generous._claim, replace(proof, known=wrong)))
    rates = np.zeros(len(known.tails))
    for seed in range(30):
        pools = begun(LIST)
        for night in range(1, NIGHTS + 1):
            read_night(generous, pools, Secret.from_seed(seed), night, None)
        rates += [(pools.levels > level).sum() for level in range(rates.size)]
    trials = 30 * SIZE
    # Seven standard deviations are allowed. The tails exceed the exact probabilities by a few percent.
    assert (rates / trials <= np.array(known.tails) + 7 * np.sqrt(np.array(known.tails) / trials)).all()
    assert rates[0] / trials >= 0.8 * known.tails[0]


# Tests of listed items that have only one user.


def test_a_listed_item_of_one_user_is_released_with_at_most_the_stated_probability(tmp_path):
    """The test counts how many of 20,000 listed items of one user reach the lowest level (false alarm 1e-9)."""
    items = 20_000
    mechanism = vp.Items(1, known=[f"w{number}" for number in range(items)])
    series = mechanism.series(tmp_path / "s", vp.Budget(3, 0.01), nights=4, seed=1)
    table = pl.DataFrame({"who": range(items), "what": [f"w{number}" for number in range(items)]})
    for night in range(1, 5):
        series.run(vp.read(table, user="who", items="what"), night=night)
    _, pools = series._read()
    rate, most = float((pools.levels > 0).mean()), numbers_of_list(series.plan.proof)["alone_at_most"]
    assert rate <= most + 7 * (most / items) ** 0.5
    assert rate >= 0.3 * most


# Tests of the list in the state, the plan and the record.


def rows(words, users=3000, night=0):
    """Return rows in which each user has one of the words."""
    table = pl.DataFrame({"who": range(users), "what": [words[user % len(words)] for user in range(users)]})
    return vp.read(table, user="who", items="what")


def test_a_listed_item_is_released_earlier(tmp_path):
    """The list is stored at the start of the series, so later nights do not need it."""
    words, found = [f"w{number}" for number in range(40)], {}
    for name, known in (("without", None), ("with", [*words, *(f"n{number}" for number in range(100))])):
        vp.Items(known=known).series(tmp_path / name, BUDGET, nights=4, seed=1)
        for night in (2, 3, 4):
            vp.Items().series(tmp_path / name).run(rows(words), night=night)
        found[name] = Series(tmp_path / name)
    assert found["with"].counts[1] > found["without"].counts[1]
    release = found["with"].release
    assert release.known.all()
    assert found["without"].release.known is None
    assert "was on the public list" in str(release.explain("w0"))
    plan = found["with"].plan
    assert plan.to_dict()["known"]["size"] == 140
    assert plan.certificate.proof.known.listed == plan.mechanism.known.listed
    assert SeriesPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    release.save(tmp_path / "saved")
    again = vp.load(tmp_path / "saved")
    assert again.known.all()
    assert record_of(again)["plan"] == record_of(release)["plan"]
    assert vp.Items(known=tmp_path / "saved").plan_series(BUDGET, 4).mechanism.known.size == len(release)


def test_the_first_night_converts_the_list_like_its_rows(tmp_path):
    """The tokenizer of texts or the types of columns are applied to the list, as in a single release."""
    texts = pl.DataFrame({"who": range(3000), "body": ["Some tea"] * 3000})
    series = vp.Items(known=["TEA", "two words", "milk"]).series(tmp_path / "texts", BUDGET, nights=1, seed=1)
    series.run(vp.read(texts, user="who", text="body"))
    _, pools = series._read()
    assert sorted(pools.words.to_pylist()) == ["milk", "some", "tea"]
    assert dict(zip(pools.words.to_pylist(), (pools.levels >= 0).tolist(), strict=True)) == {
        "milk": True,
        "some": False,
        "tea": True,
    }
    prices = pl.DataFrame({"who": range(3000), "price": ["1.5"] * 3000, "day": ["mon"] * 3000})
    prices = prices.cast({"price": pl.Decimal(10, 2)})
    table = pl.DataFrame({"price": ["1.50", "2"], "day": ["mon", "tue"]})
    series = vp.Items(known=table).series(tmp_path / "keys", BUDGET, nights=1, seed=1)
    series.run(vp.read(prices, user="who", items=["price", "day"]))
    assert series.released.to_pydict() == {"price": [Decimal("1.50")], "day": ["mon"], "night": [1]}
    assert series.release.known.tolist() == [True]


def test_columns_of_the_list_are_matched_by_name(tmp_path):
    """The order of columns does not matter, and other names are rejected."""
    trips = pl.DataFrame({"who": range(3000), "start": ["lund"] * 3000, "end": ["delft"] * 3000})
    table = pl.DataFrame({"end": ["delft"], "start": ["lund"]})
    for folder, listed in (("table", table), ("names", table.rename({"end": "to"}))):
        vp.Items(known=listed).series(tmp_path / folder, BUDGET, nights=1, seed=1)
    found = Series(tmp_path / "table").run(vp.read(trips, user="who", items=["start", "end"]))
    assert found.known.tolist() == [True]
    with pytest.raises(InputError, match="a table with the columns start, end"):
        Series(tmp_path / "names").run(vp.read(trips, user="who", items=["start", "end"]))


def test_a_list_that_does_not_fit_is_rejected(tmp_path):
    """The first night raises an error that describes the problem, and does not change the state."""
    series = vp.Items(known=["tea"]).series(tmp_path / "s", BUDGET, nights=3)
    before = (tmp_path / "s" / "state.voxpop").read_bytes()
    with pytest.raises(InputError, match="must have columns with types"):
        series.run(vp.read(pl.DataFrame({"who": [], "what": []}), user="who", items="what"))
    both = pl.DataFrame({"who": [1], "what": ["a"], "where": ["b"]})
    with pytest.raises(InputError, match="has 1 column,"):
        series.run(vp.read(both, user="who", items=["what", "where"]))
    assert (tmp_path / "s" / "state.voxpop").read_bytes() == before
    plan = SeriesPlan.from_dict(vp.Items(known=["tea"]).plan_series(BUDGET, 3).to_dict())
    with pytest.raises(InputError, match="loaded from a file"):
        Series.start(tmp_path / "t", plan)


def test_listed_items_have_the_noise_of_skipped_first_nights(tmp_path):
    """A listed item without users has noise from all nights, including the nights before the first rows."""
    series = vp.Items(known=["a", "nobody"]).series(tmp_path / "s", BUDGET, nights=3, seed=4)
    series.run(rows(["a", "b"], users=4), night=3)
    _, pools = series._read()
    naive = Nights(series.plan, Secret.from_seed(4), ["a", "nobody"])
    factors = series.plan.proof.factors
    exact = sum(factor * naive.noise(night, "nobody") for night, factor in enumerate(factors, start=1))
    assert pools.scores[pools.words.to_pylist().index("nobody")] == exact
