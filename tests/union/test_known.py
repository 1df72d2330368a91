"""Tests of listed items together with unknown items, with the real code (docs/privacy/known.md)."""

import datetime as dt
import json
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from support.power import surely_refuted
from voxpop.engine.contract import check_engine
from voxpop.engine.local.pools import Batch, PoolBatches, PoolUsers
from voxpop.errors import InputError, InternalError
from voxpop.kernels.arrays import DROPPED, RELEASED, UNDECIDED
from voxpop.mechanisms.rounds import known as planning
from voxpop.mechanisms.rounds.adaptive import Terms
from voxpop.mechanisms.rounds.known import released_alone
from voxpop.mechanisms.rounds.menu import planned_rounds, planned_slack, released_in_rounds
from voxpop.mechanisms.rounds.users_needed import MinUsersBound, ever_released_with_few
from voxpop.mechanisms.set_union import plan as union_plan
from voxpop.privacy.certificate import check, covers_rounds
from voxpop.privacy.cumulative import ScoreStep, at_level, proved_tails, released_by
from voxpop.privacy.decisions import ReleaseDecisions
from voxpop.privacy.gate.rounds import AdaptiveGate, PublicParts, score_step
from voxpop.privacy.parameters import KnownList
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.capped import CappedDescent
from voxpop.reading.arrow import text_buffers
from voxpop.release.known import KnownItems
from voxpop.release.release import KNOWN_KEY, release_of
from voxpop.release.report.page import unpacked
from voxpop.release.saving import TABLE_FILE, record_of
from voxpop.release.table import to_parquet
from voxpop.testing.auditing import TrialCounts, epsilon_shown

BUDGET = vp.Budget(2, 1e-5)
QUIET = vp.ReadOptions(progress=False)


def corpus_of(users, keys=None):
    """Return a corpus of users with these items."""
    keys = range(len(users)) if keys is None else keys
    rows = [(f"u{key}", item) for key, items in zip(keys, users, strict=True) for item in items]
    table = pl.DataFrame(rows, schema={"who": pl.String, "what": pl.String}, orient="row")
    return vp.read(table, user="who", items="what", options=QUIET)


# A search over whole releases of neighbours, with outcomes that depend only on names.


class Watch:
    """Records the weights by pass and item, and replaces the outcomes of each round with draws that ignore weights.

    Args:
        patch: The monkeypatch fixture of the test.
        smaller: The `Watch` of the run without the extra user, or None in that run. Novel items are never released.
    """

    def __init__(self, patch, smaller=None):
        self.weights = {}
        self.drawn = None if smaller is None else smaller.of("first")
        self.pooled = None if smaller is None else smaller.shared()
        patch.setattr(ScoreStep, "__call__", lambda step, *given: self.round(step, *given))
        patch.setattr(ReleaseDecisions, "__call__", lambda decision, *given: self.first(decision, *given))

    def note(self, purpose, names, weights):
        for name, weight in zip(names, weights, strict=True):
            self.weights.setdefault((purpose, name), weight)

    def first(self, decision, weights, ids, texts):
        letters, starts = texts
        names = decision.secret.text_draws("words", letters, starts)[:, 0]
        self.note("first", names.tolist(), weights.tolist())
        found = decision.secret.draws("outcome", names, 0)[:, 0] % np.uint64(5) == 0
        return found & np.array([self.drawn is None or name in self.drawn for name in names.tolist()])

    def round(self, step, weights, names, score):
        self.note(step.purpose, names[:, 0].tolist(), weights.tolist())
        draws = step.secret.draws(step.purpose, names[:, 0], 7)
        score = score + step.part * (3.0 * (draws[:, 0] >> np.uint64(11)) / 2.0**53 - 1.2)
        states = (2 + draws[:, 1] % np.uint64(254)).astype(np.uint8)
        states[draws[:, 1] % np.uint64(11) == 0] = DROPPED
        novel = np.array([self.pooled is not None and name not in self.pooled for name in names[:, 0].tolist()], bool)
        states[(draws[:, 1] % np.uint64(13) == 0) & ~novel] = RELEASED
        return score, states

    def of(self, purpose):
        """Return the items of a pass."""
        return {name for each, name in self.weights if each == purpose}

    def shared(self):
        """Return the items that receive noise in later rounds."""
        return {name for purpose, name in self.weights if purpose != "first"}


def pairs(count, seed=0):
    """Yield the users, the extra user, the list and the keys of small collections.

    The list has items of all users, items of only the extra user, and items without users.
    """
    rng = np.random.default_rng(seed)
    for _ in range(count):
        common, own = [f"c{n}" for n in range(rng.integers(1, 14))], [f"own{n}" for n in range(rng.integers(1, 6))]
        users = [list(rng.choice(common, rng.integers(1, len(common) + 1), False)) for _ in range(rng.integers(1, 6))]
        extra = [*rng.choice(common, rng.integers(0, len(common) + 1), False), *own]
        listed = [each for each in (*common, *own) if rng.random() < 0.5] + ["nobody"]
        yield users, extra, listed, rng.permutation(len(users) + 1).tolist()


@cache
def planned(union):
    """Return the plan for a list of 30 items. The plan is also valid for shorter lists."""
    return replace(union, known=[f"i{number}" for number in range(30)]).plan(BUDGET)


def gates(plan):
    """Return a function that returns a new gate of the plan for each seed. The certificate is written only once."""
    text = plan.certificate.to_json()
    return lambda seed: AdaptiveGate(text, Secret.from_seed(seed))


def searched(monkeypatch, union, cases, seed=0):
    """Return the largest squared distance relative to the planned mu^2, and whether public outcomes are equal."""
    worst, same = 0.0, True
    rounds, gate_of = planned(union).passes[0], gates(planned(union))
    for number, (users, extra, listed, keys) in enumerate(pairs(cases, seed)):
        ran, found = [], []
        parts = PublicParts([pa.array(listed, pa.large_string())], text_buffers)
        for mine, places in ((users, keys[1:]), ([*users, extra], [*keys[1:], keys[0]])):
            with monkeypatch.context() as patch:
                ran.append(Watch(patch, *ran))
                words, _ = released_in_rounds(rounds, gate_of(number), check_engine(corpus_of(mine, places)), parts)
                found.append(set(words.to_pylist()))
        smaller, larger = ran
        # All listed items are shared, with and without users.
        names = Secret.from_seed(number).text_draws("words", *text_buffers(parts.parts[0]))[:, 0]
        shared = smaller.shared() | set(names.tolist())
        same &= {each for each in larger.weights if each[1] in shared and each[0] != "first"} == {
            each for each in smaller.weights if each[0] != "first"
        }
        # The same listed items must be released with and without the extra user.
        same &= found[0] & {*listed} == found[1] & {*listed}
        squares = 0.0
        purposes = {"first": (rounds.first_round.scale, rounds.first_round.shares.setting.unit)}
        purposes |= {
            f"noise/round {place + 1}/length 1": (each.sigma, each.shares.setting.unit)
            for place, each in enumerate(rounds.rounds)
        }
        for purpose, (sigma, unit) in purposes.items():
            names = smaller.of("first") if purpose == "first" else shared
            moved = [larger.weights.get((purpose, n), 0) - smaller.weights.get((purpose, n), 0) for n in names]
            squares += (np.linalg.norm(np.array(moved, np.float64)) / unit / sigma) ** 2
        worst = max(worst, squares / rounds.square)
    return worst, same


UNIONS = {name: vp.Items(max_items_per_user=most) for name, most in (("all drawn", 40), ("some drawn", 3), ("one", 1))}


@pytest.mark.parametrize("name", UNIONS)
def test_one_user_changes_weights_of_shared_items_by_at_most_the_charge(monkeypatch, name):
    """All listed items are shared, including items that only the extra user has.

    All of them receive noise in every round.
    """
    worst, same = searched(monkeypatch, UNIONS[name], 40)
    assert same
    assert 0.3 < worst <= 1 + 1e-9


@pytest.mark.slow  # The test checks the search, not the package.
def test_noise_on_only_listed_items_with_users_is_detected(monkeypatch):
    """In the broken variant, listed items without users receive no noise, so noise would reveal a single user."""
    real = AdaptiveGate._reached_by_noise
    nothing = lambda gate, rounds, letters, starts: np.zeros(starts.size - 1, np.uint8)  # noqa: E731
    monkeypatch.setattr(AdaptiveGate, "_reached_by_noise", nothing)
    assert not searched(monkeypatch, UNIONS["some drawn"], 20)[1]
    monkeypatch.setattr(AdaptiveGate, "_reached_by_noise", real)
    assert searched(monkeypatch, UNIONS["some drawn"], 20)[1]


@pytest.mark.slow  # The test checks the search, not the package.
def test_a_first_round_that_depends_on_the_list_is_detected(monkeypatch):
    """In the broken variant, listed items are released in the first round if they have weight in this round.

    Other users have the item but drew different items. The item leaves their pools only if the extra user drew it.
    """
    real = Watch.first

    def early(self, decision, weights, ids, texts):
        drawn, self.drawn = self.drawn, None
        found, self.drawn = real(self, decision, weights, ids, texts), drawn
        letters, starts = texts
        names = [letters[begin:end].tobytes().decode() for begin, end in pairwise(starts)]
        keys = decision.secret.text_draws("words", letters, starts)[:, 0].tolist()
        listed = np.array([name in LISTED_NOW for name in names], bool)
        shared = np.array([drawn is None or key in drawn for key in keys], bool)
        return found & (listed | shared)

    monkeypatch.setattr(Watch, "first", early)
    original = AdaptiveGate.round

    def remembered(self, number, listed):
        LISTED_NOW.clear()
        LISTED_NOW.update(*(part.to_pylist() for part in listed.parts))
        original(self, number, listed)

    monkeypatch.setattr(AdaptiveGate, "round", remembered)
    worst, same = searched(monkeypatch, UNIONS["some drawn"], 150)
    assert worst > 1.02 or not same


LISTED_NOW = set()


def test_a_list_that_depends_on_the_data_is_detected(monkeypatch):
    """In the broken variant, the list contains only items with users, so one user can change the list."""
    original = AdaptiveGate._with_listed

    def with_held(self, rounds, known, listed, found):
        held = set(self._pools._vocabulary.to_pylist())
        (part,) = listed.parts
        parts = [part.filter(pa.array([each in held for each in part.to_pylist()], pa.bool_()))]
        return original(self, rounds, known, PublicParts(parts, text_buffers), found)

    monkeypatch.setattr(AdaptiveGate, "_with_listed", with_held)
    assert not searched(monkeypatch, UNIONS["some drawn"], 20)[1]


# Tests of draws and caps with listed items.


def users_with(listed, unknown, dropped, users=20_000):
    """Return many users with the same numbers of items. The last unknown items were dropped."""
    size = listed + unknown + dropped
    items = np.arange(users * size, dtype=np.int32)
    place = items % size
    batches = PoolBatches(None)
    starts = np.arange(users + 1, dtype=np.int64) * size
    batches.append(Batch.of(items, starts, np.arange(users, dtype=np.uint64)))
    names = np.arange(items.size, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    pools = PoolUsers(batches, names, Secret.from_seed(8))
    pools.listed = (place < listed).astype(np.uint8)
    pools.states[place >= listed + unknown] = DROPPED
    return pools, place


def shares_at(union):
    rounds = planned(union).passes[0]
    return rounds.rounds[5].shares


@pytest.mark.jit
def test_an_unknown_item_gets_weight_with_at_most_the_charged_probability(monkeypatch):
    """Users draw from listed and unknown items together. Separate draws of unknown items are detected.

    The probability of a false alarm is below 1e-9.
    """
    shares = shares_at(vp.Items(max_items_per_user=1))
    pools, place = users_with(listed=5, unknown=1, dropped=49)
    level = int(shares.caps.level(np.array([50]))[0])
    most, users = shares.caps.chances[level], 20_000
    assert most < 0.5
    weights = pools.weigh_pools(shares, "round 6")
    found = int((weights[place == 5] > 0).sum()) / users
    deviation = (most / users) ** 0.5
    assert found <= most + 7 * deviation
    # One of six undecided items is drawn, so no probability is above 1 in 6.
    assert found >= min(most, 1 / 6) - 7 * deviation
    real = PoolUsers._cut

    def apart(self, batch, limit, pass_name):
        """Draw from unknown items separately, so that the only unknown item is always drawn."""
        unknown = self.listed[batch.items] == 0
        ends = np.concatenate([[0], np.cumsum(unknown)])
        return real(self, Batch(batch.items[unknown], ends[batch.starts], batch.keys, batch.dropped), limit, pass_name)

    monkeypatch.setattr(PoolUsers, "_cut", apart)
    pools, place = users_with(listed=5, unknown=1, dropped=49)
    assert int((pools.weigh_pools(shares, "round 6")[place == 5] > 0).sum()) / users > most + 7 * deviation


@pytest.mark.jit
def test_caps_and_coins_apply_only_to_unknown_items():
    """If a user has 60 unknown items, a listed item receives the weight that its gap allows.

    A coin affects only the weight of unknown items.
    """
    shares = shares_at(vp.Items(max_items_per_user=100))
    unit = shares.setting.unit
    pools, place = users_with(listed=1, unknown=60, dropped=0, users=3)
    weights = pools.weigh_pools(shares, "round 6") / unit
    cap = shares.caps.weights[int(shares.caps.level(np.array([60]))[0])][5] / 2**30
    # All gaps have the same size. Therefore, unknown items reach the cap, and the listed item gets the rest of the
    # norm, unless no cap applies.
    assert weights[place > 0].max() <= cap
    assert weights[place == 0] == pytest.approx(
        max((1 - 60 * cap**2) ** 0.5 if 60 * cap**2 < 1 else 0, 61**-0.5), rel=1e-6
    )
    coins = shares_at(vp.Items(max_items_per_user=1))
    pools, place = users_with(listed=1, unknown=0, dropped=60, users=500)
    assert (pools.weigh_pools(coins, "round 6") > 0)[place == 0].all()


def test_caps_depend_on_the_number_of_unknown_items(monkeypatch):
    """Of the 68 items in each pool, 65 are undecided, and 5 of these are listed, so n is 63 with the dropped items."""
    real, seen = CappedDescent.given, []

    def given(self, undecided, dropped, bits, listed=0):
        seen.append((undecided.tolist(), dropped.tolist(), listed.tolist()))
        return real(self, undecided, dropped, bits, listed)

    monkeypatch.setattr(CappedDescent, "given", given)
    pools, _ = users_with(listed=5, unknown=60, dropped=3, users=4)
    pools.weigh_pools(shares_at(vp.Items(max_items_per_user=100)), "round 6")
    assert seen == [([65] * 4, [3] * 4, [5] * 4)]


def test_pools_do_not_limit_listed_items():
    """A user keeps all 300 listed items and 7 of 50 unknown items, which are the same as without a list."""
    pools, place = users_with(listed=300, unknown=50, dropped=0, users=4)
    pools.draw(7, "pool")
    assert (pools.states[place < 300] == UNDECIDED).all()
    assert int((pools.states[place >= 300] == UNDECIDED).sum()) == 4 * 7
    alone, _ = users_with(listed=0, unknown=50, dropped=0, users=4)
    alone._names = pools._names[place >= 300]
    alone.draw(7, "pool")
    assert ((alone.states == UNDECIDED) == (pools.states[place >= 300] == UNDECIDED)).all()


# Tests of the share of released items without users.


def listed_parts(count, prefix="n"):
    return PublicParts([pa.array([f"{prefix}{number}" for number in range(count)], pa.large_string())], text_buffers)


def share_of_spurious(plan, corpus, parts, held, runs):
    """Return the mean of the share of released listed items without users, over releases with fresh seeds."""
    shares, engine, gate_of = [], check_engine(corpus), gates(plan)
    for seed in range(runs):
        words, _ = released_in_rounds(plan.passes[0], gate_of(seed), engine, parts)
        found = words.to_pylist()
        shares.append(sum(word not in held for word in found) / max(1, len(found)))
    return float(np.mean(shares))


@pytest.fixture(scope="module")
def generous():
    """Return a plan with an expected share of 0.3, so that a few hundred releases show a fault."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(union_plan, "Terms", partial(Terms, share_without_users=0.3))
        return vp.Items(max_items_per_user=10, known=[f"n{number}" for number in range(400)]).plan(BUDGET)


@pytest.mark.jit
def test_the_share_of_items_without_users_is_at_most_the_stated_share(monkeypatch, generous):
    """The share is at most the expected share, for a list without users and for a list in which some items have users.

    Broken variants, which use the tails of one round or a list size that is too small, are detected, because nearly all
    of their releases contain only items without users. The test compares mean shares of up to 150 releases. Their seeds
    are fixed, so there are no false alarms.
    """
    nobody = corpus_of([["x"]])
    assert share_of_spurious(generous, nobody, listed_parts(400), {"x"}, 150) <= 0.3 + 0.05
    held = [f"n{number}" for number in range(10)]
    some = corpus_of([held] * 400)
    assert share_of_spurious(generous, some, listed_parts(400), {*held}, 60) <= 0.3 + 0.05
    real = AdaptiveGate._with_listed

    score = generous.passes[0].score

    def late(self, rounds, known, listed, found):
        """Use the tails of only those levels that are reached for the first time in the last round."""
        scores = [at_level(score, known, level) for level in range(len(known.tails))]
        early = [replace(each, thresholds=(*each.thresholds[:-1], 40.0)) for each in scores]
        pairs = zip(map(released_by, scores), map(released_by, early), strict=True)
        tails = tuple(max(1e-12, whole - before) for whole, before in pairs)
        return real(self, rounds, replace(known, tails=tails), listed, found)

    with monkeypatch.context() as patch:
        patch.setattr(AdaptiveGate, "_with_listed", late)
        assert share_of_spurious(generous, nobody, listed_parts(400), {"x"}, 10) > 0.8

    def without_size(self, rounds, known, listed, found):
        small = replace(known, listed=replace(known.listed, size=40))
        return real(self, rounds, small, listed, found)

    with monkeypatch.context() as patch:
        patch.setattr(AdaptiveGate, "_with_listed", without_size)
        assert share_of_spurious(generous, nobody, listed_parts(400), {"x"}, 10) > 0.8


def test_certificates_with_wrong_tails_are_rejected(generous):
    """`check` rejects a certificate with lower tails, another list, or levels that do not decrease."""
    rounds = generous.passes[0]
    known = rounds.known
    assert proved_tails(rounds.score, known)
    # All tails are lower, because a single lower tail would break the order.
    lower = tuple(0.9 * tail for tail in known.tails)
    for wrong in (
        replace(known, tails=lower),
        replace(known, tails=known.tails[::-1]),
        replace(known, drops=known.drops[1:]),
        replace(known, share=1.0),
    ):
        assert not proved_tails(rounds.score, wrong)
        certificate = generous.certificate
        proof = replace(certificate.proof, rounds=replace(certificate.proof.rounds, known=wrong))
        with pytest.raises(InternalError):
            check(replace(certificate, proof=proof))
    for other in (None, KnownList(399, "x")):
        with pytest.raises(InternalError):
            check(replace(generous.certificate, proof=replace(generous.certificate.proof, known=other)))


# Tests of items of one user and of few users.


def test_a_listed_item_of_one_user_is_released_with_at_most_the_stated_probability(generous):
    """The test counts how many of 400 listed items with one user reach the lowest level (false alarm below 1e-9)."""
    rounds, level = generous.passes[0], 0
    most = released_alone(rounds, level)
    single = check_engine(corpus_of([[f"n{number}"] for number in range(400)]))
    found, runs, gate_of = 0, 12, gates(generous)
    for seed in range(runs):
        gate = gate_of(seed)
        run_rounds(gate, single, listed_parts(400))
        found += int((gate._pools.levels()[1] > level).sum())
    trials = 400 * runs
    assert found / trials <= most + 7 * (most / trials) ** 0.5
    assert found / trials >= 0.6 * most


def run_rounds(gate, engine, parts):
    gate.open(engine)
    for number in range(len(gate.proof.rounds.later) + 1):
        gate.round(number, parts)


def test_min_users_applies_to_listed_items(monkeypatch):
    """All levels are above the thresholds of `min_users`. Levels that ignore `min_users` are detected."""
    union = vp.Items(max_items_per_user=10, min_users=20, known=["a", "b", "c"])
    plan = union.plan(BUDGET)
    rounds, promise = plan.passes[0], MinUsersBound(20, 1e-6)
    assert ever_released_with_few(promise, rounds.first_round, at_level(rounds.score, rounds.known, 0)) <= 1e-6
    assert plan.to_dict()["known"]["alone_at_most"] <= 1e-6
    monkeypatch.setattr(planning, "raised", lambda promise, score: score)
    with pytest.raises(InternalError, match="min_users allows"):
        union.plan(BUDGET)


# Tests of which lists are valid, and of their effects.


def test_sources_of_several_kinds_make_one_list(tmp_path):
    """Lists, files, tables and releases of the same items have the same fingerprint."""
    items = ["tea", "milk", "naïve", "tea"]
    (tmp_path / "list.txt").write_text("tea\n\nmilk\nnaïve\n", encoding="utf-8")
    frame = pl.DataFrame({"what": items})
    frame.write_csv(tmp_path / "list.csv")
    frame.write_parquet(tmp_path / "list.parquet")
    release = vp.Items(max_items_per_user=3).release(corpus_of([items] * 400), vp.Budget(4, 1e-6), seed=1)
    assert len(release) == 3
    release.save(tmp_path / "folder")
    counts = release.count(corpus_of([items] * 400), vp.Budget(4, 1e-6), seed=1)
    kinds = [items, set(items), pl.Series(items), frame, frame.to_arrow(), frame.to_pandas(), release, counts]
    kinds += [tmp_path / "list.txt", str(tmp_path / "list.csv"), tmp_path / "list.parquet", tmp_path / "folder"]
    lists = [KnownItems.of(each) for each in kinds]
    assert {each.fingerprint for each in lists} == {lists[0].fingerprint}
    assert {each.size for each in lists} == {3}
    assert vp.Items(known=items) == vp.Items(known=frame) != vp.Items(known=["tea"])


@pytest.mark.parametrize("given", [7, b"tea", [], [1.5, 2.5], ["tea", 3], [("a", "b"), ("c",)]])
def test_values_other_than_lists_are_rejected(given):
    with pytest.raises(InputError):
        vp.Items(known=given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["tea", float("nan")], "several kinds: floats, strings"),
        ([float("nan")], "floats, which only approximate"),
        ([4711 * 10**30], "whole numbers that do not fit into 64 bits"),
        ([("tea", 4711 * 10**30)], "whole numbers that do not fit into 64 bits"),
        ([True, "tea"], "several kinds: strings, truth values"),
        ([True, 1], "several kinds: truth values, whole numbers"),
        (["tea", b"tea"], "several kinds: bytes, strings"),
        ([dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5)], "several kinds: dates, dates and times"),
        ([dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], "dates and times with a zone"),
        (["\ud800tea"], "not valid Unicode"),
        ([4711 + 2j], "cannot be items: complex"),
        ([("a", "b"), "tea"], "tuples of different lengths, or tuples and other values"),
    ],
)
def test_errors_name_the_kinds_of_values_that_cannot_be_items(given, words):
    """The message contains the kinds but no value. Arrow would change the values of some of these lists."""
    with pytest.raises(InputError, match=words) as error:
        vp.Items(known=given)
    assert not any(value in str(error.value) for value in ("tea", "4711", "nan", "2020"))
    assert vp.Items(known=[None, "milk"]) == vp.Items(known=["milk"])


def test_the_tokenizer_of_the_data_converts_listed_texts():
    """A text of one token becomes this token. Other texts are ignored, because they cannot be items of the data."""
    listed = KnownItems.of(["Tea", "tea", "ice cream", "naïve ", "..."])
    words = vp.read(pl.DataFrame({"who": [1], "what": ["x"]}), user="who", text="what", options=QUIET)
    engine = check_engine(words)

    def tokens(reading):
        return [each for part in listed.parts("text", reading, engine.keys) for each in part.to_pylist()]

    assert sorted(tokens(engine.token_source)) == ["naïve", "tea"]
    assert sorted(tokens("whitespace")) == ["...", "Tea", "naïve", "tea"]
    # The tokens of each tokenizer are cached separately.
    assert sorted(tokens(engine.token_source)) == ["naïve", "tea"]


def test_keys_of_tables_are_compared_by_value():
    """A table can list keys of several columns and types. A list with another number of columns is rejected."""
    rows = pl.DataFrame({"who": range(400), "shop": ["a"] * 400, "day": [1, 2] * 200})
    corpus = vp.read(rows, user="who", items=["shop", "day"], options=QUIET)
    listed = pl.DataFrame({"shop": ["a", "a", "b"], "day": [1, 2, 3]})
    union = vp.Items(max_items_per_user=2, known=listed)
    assert union.release(corpus, BUDGET, seed=3).to_list() == [("a", 1), ("a", 2)]
    assert vp.Items(max_items_per_user=2, known=[("a", 1), ("a", 2), ("b", 3)]) == union
    with pytest.raises(InputError, match="has 1 column,"):
        vp.Items(max_items_per_user=2, known=["a"]).release(corpus, BUDGET)


def test_columns_of_a_list_are_matched_by_name(tmp_path):
    """A table, file or release gives the same list if its columns are in another order than in the data.

    A table with none of these names is read in the order of its columns.
    """
    rows = pl.DataFrame({"who": range(400), "shop": ["1"] * 400, "day": [1, 2] * 200})
    rows = rows.with_columns(day=pl.date(2026, 11, pl.col("day")))
    corpus = vp.read(rows, user="who", items=["shop", "day"], options=QUIET)
    table = pl.DataFrame({"day": ["2026-11-01", "2026-11-02", "2026-11-03"], "shop": ["1", "1", "7"]})
    table.write_csv(tmp_path / "keys.csv")
    table.with_columns(pl.col("day").str.to_date()).write_parquet(tmp_path / "keys.parquet")
    other = vp.read(rows, user="who", items=["day", "shop"], options=QUIET)
    release = vp.Items(max_items_per_user=2).release(other, vp.Budget(4, 1e-6), seed=1)
    expected = vp.Items(max_items_per_user=2, known=release).release(corpus, BUDGET, seed=3)
    assert len(expected) == 2
    assert expected.known.all()
    renamed = table.select(pl.col("shop").alias("a"), pl.col("day").alias("b"))
    for known in (table, tmp_path / "keys.csv", str(tmp_path / "keys.parquet"), renamed):
        found = vp.Items(max_items_per_user=2, known=known).release(corpus, BUDGET, seed=3)
        assert found.to_list() == expected.to_list()
        assert found.known.all()
        counts = found.count(corpus, BUDGET, known=known, seed=1)
        assert len(counts.to_arrow()) == 3
    with pytest.raises(InputError, match="a table with the columns shop, day"):
        vp.Items(known=table.rename({"day": "date"})).release(corpus, BUDGET)


def test_categories_of_columns_do_not_change_a_release():
    """Dictionaries and categories are private data, so only `known` is a public list."""
    table = pl.DataFrame({"who": range(600), "what": ["tea", "milk", "rare"] * 200})
    plain, coded = table, table.with_columns(pl.col("what").cast(pl.Categorical))
    enum = table.with_columns(pl.col("what").cast(pl.Enum(["tea", "milk", "rare", "nobody"])))
    union = vp.Items(max_items_per_user=2, known=["tea", "nobody"])
    first, *others = (
        union.release(vp.read(each, user="who", items="what", options=QUIET), BUDGET, seed=5)
        for each in (plain, coded, enum)
    )
    for other in others:
        assert other.grams.equals(first.grams)
        assert (other.plan.to_dict(), other.plan.certificate) == (first.plan.to_dict(), first.plan.certificate)


def test_plans_records_and_certificates_contain_the_size_and_the_fingerprint():
    plan = vp.Items(known=["tea", "milk"]).plan(BUDGET)
    listed = plan.certificate.proof.known
    numbers = plan.to_dict()["known"]
    assert (listed.size, listed.fingerprint) == (numbers["size"], numbers["fingerprint"])
    assert numbers["size"] == 2
    assert "known items" in str(plan)
    assert 0 < numbers["alone_at_a_tenth"] <= numbers["alone_at_most"] < 0.1


def test_the_gate_rejects_another_list():
    """The cases are a missing list, a longer list than in the certificate, and rounds with another list."""
    plan = planned(vp.Items(max_items_per_user=3))
    engine = check_engine(corpus_of([["a"]]))
    for parts in (None, listed_parts(31)):
        gate = AdaptiveGate(plan.certificate.to_json(), Secret.from_seed(1))
        gate.open(engine)
        with pytest.raises(InternalError, match="list"):
            gate.round(0, parts)
    chosen = vp.Items(known=["a"]).plan(BUDGET)
    gate = AdaptiveGate(chosen.certificate.to_json(), Secret.from_seed(1))
    gate.open(engine)
    gate.classes()
    other = planned_rounds(Terms(BUDGET.epsilon, BUDGET.delta / 2, novelty=0.1, listed=KnownList(1, "other")), 100)
    with pytest.raises(InternalError, match="a different list"):
        gate.choose(other.stated())


def test_draws_with_a_list_are_charged_by_its_size():
    """If the limit is below the pool, a novel item can have the same bits as any listed item or item of the pool."""
    rounds = planned(vp.Items(max_items_per_user=3)).passes[0].stated()
    assert covers_rounds(planned_slack(3, rounds.known.listed), rounds, chosen=False)
    assert not covers_rounds(planned_slack(3, KnownList(29, "x")), rounds, chosen=False)
    assert not covers_rounds(planned_slack(3), rounds, chosen=False)


# An audit of listed items with one user and without users.


def with_a_level(plan, corpus, runs):
    """Return how many of 400 listed items reach a level, as a total over several runs of the real code."""
    found, engine, parts, gate_of = 0, check_engine(corpus), listed_parts(400), gates(plan)
    for seed in range(runs):
        gate = gate_of(seed)
        run_rounds(gate, engine, parts)
        names, reached = gate._pools.levels()
        noise = gate._reached_by_noise(gate.proof.rounds, *text_buffers(parts.parts[0]))
        held = set(names.filter(pa.array(reached > 0)).to_pylist())
        alone = {name for name, level in zip(parts.parts[0].to_pylist(), noise.tolist(), strict=True) if level}
        assert alone & set(names.to_pylist()) <= held
        found += len(held | alone)
    return found


@pytest.mark.jit
def test_the_audit_of_listed_items_with_one_user_passes(monkeypatch, generous):
    """The audit has 20,000 items with one user and 20,000 without users. Noise on only items with users is detected.

    The broken variant has 4,000 items of each kind, which refute it with probability above 0.999. The probability of a
    false alarm is below 1e-9.
    """
    single, nobody, runs, few = corpus_of([[f"n{number}"] for number in range(400)]), corpus_of([["x"]]), 50, 10
    joined = with_a_level(generous, single, runs)
    sound = TrialCounts(joined, with_a_level(generous, nobody, runs), 400 * runs)
    assert epsilon_shown(sound, BUDGET.delta) <= BUDGET.epsilon
    # The largest known effect is the shift by mu over all rounds together.
    assert epsilon_shown(sound, BUDGET.delta) > 0.2
    nothing = lambda gate, rounds, letters, starts: np.zeros(starts.size - 1, np.uint8)  # noqa: E731
    monkeypatch.setattr(AdaptiveGate, "_reached_by_noise", nothing)
    broken = TrialCounts(with_a_level(generous, single, few), with_a_level(generous, nobody, few), 400 * few)
    assert broken.without == 0
    assert surely_refuted(0.9 * joined / (400 * runs), 0.0, 400 * few, BUDGET.epsilon, BUDGET.delta)
    assert epsilon_shown(broken, BUDGET.delta) > BUDGET.epsilon


def test_an_item_is_frozen_at_the_highest_level_of_every_rule(generous):
    """An item at this level receives no more weight, but items below this level can still receive weight.

    Listed items are never dropped.
    """
    rounds = generous.passes[0].stated()
    known = rounds.known
    assert known.tails[-1] * known.listed.size <= known.share < known.tails[-2] * known.listed.size * 2
    names = np.arange(20_000, dtype=np.uint64).reshape(-1, 2)
    for number in (0, 10, 19):
        step = score_step(rounds, number, Secret.from_seed(1), "x").known
        scores, states, levels = step(np.zeros(len(names), np.int64), names, np.linspace(-9, 90, len(names)))
        frozen = scores >= step.levels[-1]
        assert (levels[frozen] == len(known.tails)).all()
        assert frozen.any()
        assert (states[frozen] == RELEASED).all()
        left = ~frozen & (scores >= step.step.floor)
        assert (states[left] > DROPPED).all()
        assert not (states == DROPPED).any()


# Tests of the marks of known items.


@pytest.fixture(scope="module")
def marked():
    """Return a release of two listed items and an unknown item."""
    corpus = corpus_of([["b", "new", "z"]] * 400)
    return vp.Items(max_items_per_user=3, known=["b", "nobody", "z"]).release(corpus, BUDGET, seed=1)


def test_a_release_marks_its_known_items(marked, tmp_path):
    """The marks agree with the list, and are preserved by saving, loading and removing rows."""
    assert dict(zip(marked, marked.known.tolist(), strict=True)) == {"b": True, "new": False, "z": True}
    marked.save(tmp_path / "words")
    loaded = vp.load(tmp_path / "words", vp.Release)
    assert loaded.known.tolist() == marked.known.tolist()
    left = marked.without(["b"])
    assert dict(zip(left, left.known.tolist(), strict=True)) == {"new": False, "z": True}
    assert vp.Items(max_items_per_user=3).release(corpus_of([["b"]] * 400), BUDGET, seed=1).known is None
    with pytest.raises(InternalError):
        replace(marked, known=marked.known[:2])


@pytest.mark.parametrize("marks", ["", "oAA=", "/w==", "oA", 7])
def test_marks_that_do_not_fit_are_rejected(marked, marks):
    """A saved release with marks for another number of items, or with other characters, is not loaded."""
    tables = {TABLE_FILE: to_parquet(marked.grams, marked.keys)}
    record = {**record_of(marked), "keys": marked.keys.to_list(), KNOWN_KEY: "oA=="}
    assert release_of(record, tables).known.tolist() == [True, False, True]
    with pytest.raises((ValueError, TypeError)):
        release_of({**record, KNOWN_KEY: marks}, tables)


@pytest.mark.usefixtures("fixed_secrets")  # Otherwise, a listed item without users can be released.
def test_the_report_marks_known_items():
    """The statement about items of one user excludes known items. Without a list, the page has no marks."""
    corpus = corpus_of([["b", "new", "z"]] * 400)
    with_list, without = (vp.Items(max_items_per_user=3, known=each) for each in (["b", "nobody", "z"], None))
    page, plain = (each.release(corpus, BUDGET).report().html for each in (with_list, without))
    assert json.loads(page.split('id="facts">')[1].split("</script>")[0])["grams"]["known"] is True
    grams = unpacked(page.encode()).decode().split('id="grams">')[1].split("</script>")[0]
    assert [own for _, _, own in json.loads(grams)["depths"]] == [[1, 0, 1]]
    assert "an item of this user only, and not on the public list, is released" in page
    assert "An item in the list" not in page
    assert json.loads(plain.split('id="facts">')[1].split("</script>")[0])["grams"]["known"] is False
    assert "public list" not in plain


def test_reports_with_counts_and_rankings_mark_known_items(marked, tmp_path):
    """Numbers in the page are twice the counts plus the marks, and the table of a ranking has a column of marks."""
    corpus = corpus_of([["b", "new", "z"]] * 400)
    marked.save(tmp_path / "words")
    counts = marked.count(corpus, BUDGET, seed=2)
    counts.save(tmp_path / "words")
    ranking = marked.top(corpus, BUDGET, k=3, seed=2)
    ranking.save(tmp_path / "words")
    page = (tmp_path / "words" / "report.html").read_bytes()
    facts = json.loads(page.decode().split('id="facts">')[1].split("</script>")[0])["grams"]
    assert (facts["counts"], facts["known"]) == (True, True)
    grams = unpacked(page).decode().split('id="grams">')[1].split("</script>")[0]
    expected = (2 * counts.users + marked.known).tolist()
    assert [own for _, _, own in json.loads(grams)["depths"]] == [expected]
    head, rows = ranking._grid().head, ranking._grid().rows
    assert head == ["place", "gram", "known before"]
    assert {row[1]: row[2] for row in rows} == {"b": "on the list", "new": "", "z": "on the list"}


def test_an_explanation_states_the_probability_of_a_known_item(marked):
    """The explanation contains the number of users that known items need, and a sentence about items of one user.

    The explanation of an unknown item contains neither of them.
    """
    known, unknown, missing = (marked.explain(each) for each in ("b", "new", "zebra"))
    assert "public list of the release" in known.reasons[-1]
    assert "at most" in known.reasons[-1]
    assert not any("list" in each for each in unknown.reasons)
    assert any("not on it" in each for each in missing.reasons)
    assert known.needed[0]["users_50"] < unknown.needed[0]["users_50"]


def test_each_of_several_data_sets_has_its_own_marks():
    """A list applies to all data sets of a release, and listed items are released in each data set separately."""
    union, names = vp.Items(max_items_per_user=3, known=["b", "nobody", "z"]), ("words", "tags")
    data = {"words": corpus_of([["b", "new"]] * 400), "tags": corpus_of([["z", "other"]] * 400)}
    found = union.plan_each(names, BUDGET).release(data, seed=1)
    marks = {name: dict(zip(each, each.known.tolist(), strict=True)) for name, each in found.items()}
    assert marks == {"words": {"b": True, "new": False}, "tags": {"other": False, "z": True}}
    assert all(each.plan.to_dict()["known"]["size"] == 3 for each in found.values())
