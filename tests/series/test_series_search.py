"""A search over neighbouring streams with the real code.

P is the process without a user x, and Q is the process with x.

Half of the streams have a public list with items of several users, items of only x, and items without users.

P and Q are coupled, that is, both use the readings of Q. Then both processes must give the same results except for
novel items of x, and x must change all readings together by at most M. Tests of removed users compare release rates,
because a coupling does not detect removed names.
"""

import zlib
from collections import Counter
from dataclasses import replace
from math import exp

import numpy as np
import pytest

from support.series_nights import begin_night, begun, read_night, reading, weights_of
from support.streams import WORDS, rows_of, some_plan
from voxpop.engine.local.nights import NightlyPools
from voxpop.engine.local.weigh import item_names
from voxpop.mechanisms.series import series
from voxpop.mechanisms.series.plan import NEVER
from voxpop.privacy.gate import nights as gated
from voxpop.privacy.individual import WHOLE
from voxpop.privacy.secret import Secret
from voxpop.privacy.upcrossing import UNLISTED

pytestmark = [pytest.mark.jit, pytest.mark.slow]
STREAMS = 120
NOBODY = ["nobody", "neither", "no one"]
WRONG = {"others pay differently", "results differ", "above M"}


class Stream:
    """One of the two processes."""

    def __init__(self, plan, secret, users, seed, gone, listed):
        self.plan, self.secret, self.users, self.seed, self.gone = plan, secret, users, seed, gone
        self.pools, self.log = begun(listed), ()

    def begin(self, night):
        """Begin a night with new words of users, which depend on the user, the night and earlier releases."""
        people = {}
        for user in self.users:
            own = np.random.default_rng(zlib.crc32(repr((self.seed, user, night, self.log)).encode()))
            if own.random() < 0.7:
                people[user] = [WORDS[i] for i in np.flatnonzero(own.random(len(WORDS)) < 0.6 / (1 + 0.5 * night))]
        for user in self.users:
            if self.gone.get(user) == night:
                self.pools.remove(user)
        begin_night(self.plan, self.pools, self.secret, rows_of(people), night)
        words = self.pools.words.to_pylist()
        return dict(zip(words, weights_of(self.plan, self.pools, night).tolist(), strict=True))

    def by_word(self, values):
        """Return a dict from words to values."""
        return dict(zip(self.pools.words.to_pylist(), values.tolist(), strict=True))

    def end(self, night, read, novel=()):
        """Add the readings of Q to the scores, and release items. Novel words are never released."""
        words = self.pools.words.to_pylist()
        pools = self.pools
        pools.scores = pools.scores + np.array([read[word] for word in words], np.int64)
        decided, pools.levels = gated._decision(self.plan.proof, night)(pools.scores, pools.decided, pools.levels)
        never = np.isin(np.array(words, dtype=object), np.array(list(novel), dtype=object))
        pools.decided = np.where(never, pools.decided, decided)
        pools.released = np.where(pools.levels == UNLISTED, pools.decided, pools.released)
        gated._settle(self.plan.proof, pools, night)
        out = pools.released == night
        self.log += (tuple(sorted(word for word, now in zip(words, out, strict=True) if now)),)


def trial(seed, monkeypatch, deletes):
    """Return "ok" or the kind of violation, and the share of M that the changes of x use."""
    rng = np.random.default_rng(seed)
    nights, secret = int(rng.integers(2, 7)), Secret.from_seed(seed)
    listed = rng.permutation([*WORDS, *NOBODY])[: rng.integers(1, 12)].tolist() if seed % 2 else []
    plan = some_plan(rng, nights, int(rng.integers(1, 8)), int(rng.integers(1, 3)), listed)
    users = list(range(1, int(rng.integers(2, 9))))
    extra = int(rng.choice(users))
    gone = {
        user: int(rng.integers(2, nights + 1)) for user in users if deletes and user != extra and rng.random() < 0.4
    }
    q = Stream(plan, secret, users, seed, gone, listed)
    p = Stream(plan, secret, [user for user in users if user != extra], seed, gone, listed)
    total = 0.0
    past = gated._past_noise
    for night in range(1, nights + 1):
        heavy = q.begin(night)
        before = q.by_word(q.pools.scores)
        names = {
            tuple(name): word for name, word in zip(item_names(q.pools.words, secret).tolist(), before, strict=True)
        }

        def known(plan, secret, night, wanted, names=names, before=before):
            if past is not PAST:
                return past(plan, secret, night, wanted)
            # P uses the readings of Q, because x can already have changed the readings of a word that is new in P.
            return np.array([before[names[tuple(each)]] for each in wanted.tolist()], np.int64)

        with monkeypatch.context() as patched:
            patched.setattr(gated, "_past_noise", known)
            light = p.begin(night)
        sigma, unit = plan.proof.sigmas[night - 1], 1 << plan.proof.bits
        total += sum(((heavy[word] - light.get(word, 0)) / unit / sigma) ** 2 for word in heavy)
        paid = [dict(zip(each.pools.keys.tolist(), each.pools.paid.tolist(), strict=True)) for each in (p, q)]
        if any(paid[1][user] != payment for user, payment in paid[0].items()):
            return "others pay differently", total / plan.proof.square
        weights = np.array([heavy[word] for word in before], np.int64)
        names = item_names(q.pools.words, secret)
        read = q.by_word(reading(plan, secret, night)(weights, names, np.zeros(len(names), np.int64)))
        q.end(night, read, set(before) - set(light))
        p.end(night, read)
        if p.log != q.log:
            return "results differ", total / plan.proof.square
    return "ok" if total <= plan.proof.square * (1 + 1e-9) else "above M", total / plan.proof.square


PAST = gated._past_noise


def searched(monkeypatch, deletes=False, streams=STREAMS):
    """Return the number of streams with each outcome, and the largest share of M that x uses."""
    found = [trial(seed, monkeypatch, deletes) for seed in range(streams)]
    return Counter(name for name, _ in found), max(share for _, share in found)


def is_found(monkeypatch, outcomes):
    """Return whether the search finds one of the given outcomes."""
    return any(trial(seed, monkeypatch, False)[0] in outcomes for seed in range(STREAMS))


def test_no_user_changes_readings_by_more_than_the_budget(monkeypatch):
    """The largest change is close to M, so the search is strong enough."""
    outcomes, share = searched(monkeypatch, streams=3 * STREAMS)
    assert set(outcomes) == {"ok"}
    assert 0.95 < share <= 1 + 1e-9


def test_the_search_with_deletions_finds_no_violation(monkeypatch):
    """On some nights, some users are removed, who are the same in both streams."""
    assert set(searched(monkeypatch, deletes=True)[0]) == {"ok"}


def test_refilled_budgets_are_detected(monkeypatch):
    """In the broken variant, every night begins with the whole budget."""
    real = NightlyPools.pay

    def pay(self, *tonight):
        self.left = np.full_like(self.left, WHOLE)
        real(self, *tonight)

    monkeypatch.setattr(NightlyPools, "pay", pay)
    outcomes, share = searched(monkeypatch)
    assert outcomes["above M"] > STREAMS // 20
    assert share > 1.5


def test_missing_past_noise_is_detected(monkeypatch):
    """In the broken variant, a new item begins with a score of 0 in both streams."""
    monkeypatch.setattr(gated, "_past_noise", lambda plan, secret, night, names: np.zeros(len(names), np.int64))
    assert is_found(monkeypatch, WRONG)


def test_active_new_items_are_detected(monkeypatch):
    """In the broken variant, the second half of the items, which includes new items, is active on the last night."""
    real = series.states_of

    def states(plan, scores, decided, levels, night):
        found = real(plan, scores, decided, levels, night)
        if night == len(plan.proof.costs):  # The new items of the last night are at the end.
            found[found.size // 2 :] = 2
        return found

    monkeypatch.setattr(series, "states_of", states)
    assert is_found(monkeypatch, WRONG)


def test_a_list_that_depends_on_the_data_is_detected(monkeypatch):
    """In the broken variant, a listed item has a level only from the night on which it joins a pool."""
    real = NightlyPools.take

    def take(self, *given):
        real(self, *given)
        mine = np.array([word in WORDS[::2] for word in self.words.to_pylist()], np.bool_)
        self.levels[mine & (self.levels == UNLISTED)] = 0

    monkeypatch.setattr(NightlyPools, "recognise", lambda self, listed: None)
    monkeypatch.setattr(NightlyPools, "take", take)
    assert is_found(monkeypatch, WRONG)


def test_a_rule_that_counts_only_listed_items_with_users_is_detected(monkeypatch):
    """In the broken variant, the rule of the list counts only those listed items that are in a pool."""

    def reached(self, levels):
        mine = np.zeros(len(self.words), np.bool_)
        mine[self.items] = True
        found = np.bincount(self.levels[mine & (self.levels != UNLISTED)], minlength=levels + 1)
        return int(np.count_nonzero(self.decided[self.levels == UNLISTED])), found

    monkeypatch.setattr(NightlyPools, "reached", reached)
    assert is_found(monkeypatch, WRONG)


def test_payments_that_depend_on_other_users_are_detected(monkeypatch):
    """In the broken variant, only half of the users pay, depending on their positions among all users."""
    real = NightlyPools.pay

    def pay(self, charge, states, since):
        real(self, charge, states, since)
        refund = self.paid.copy()
        refund[: self.paid.size // 2] = 0
        self.left, self.paid = self.left + refund, self.paid - refund

    monkeypatch.setattr(NightlyPools, "pay", pay)
    assert is_found(monkeypatch, {"others pay differently"})


def released_after_deletion(keep, copies=300, holders=3):
    """Return the rates of released words without and with x, after all other users were removed."""
    rates = []
    for extra in (0, 1):
        secret, plan = Secret.from_seed(extra), some_plan(np.random.default_rng(1), 4, 1, 4)
        total = np.sqrt(np.cumsum(np.square(plan.spreads)))
        proof = replace(
            plan.proof,
            cutoffs=tuple(int(20 * sigma * 2**plan.proof.bits) for sigma in plan.proof.sigmas),
            thresholds=tuple(int(level * each) for level, each in zip((30, 30, 30, 2.5), total, strict=True)),
        )
        plan = replace(plan, proof=proof, rests=(NEVER,) * 4)
        people = {copy * 10 + user: [f"w{copy}"] for copy in range(copies) for user in range(holders + extra)}
        pools = begun()
        for night in (1, 2, 3):
            begin_night(plan, pools, secret, rows_of(people if night == 1 else {}), night)
            read_night(plan, pools, secret, night, weights_of(plan, pools, night))
        for user in people:
            if user % 10 < holders:
                pools.remove(user)
        if not keep:
            held = np.zeros(len(pools.words), np.bool_)
            held[pools.items] = True
            pools.decided[~held] = pools.released[~held] = 99
        begin_night(plan, pools, secret, rows_of({}), 4)
        read_night(plan, pools, secret, 4, weights_of(plan, pools, 4))
        rates.append(float((pools.released == 4).mean()))
    return rates


def test_names_remain_after_deletions():
    """Because names remain after users are removed, the rates with and without x are similar.

    In a broken variant, names are also removed, so Q releases words that P cannot release.

    With 300 words, an estimate of a rate of 0.2 has an error above 0.15 with probability below 1e-9.
    """
    without, with_x = released_after_deletion(keep=True)
    assert with_x - 0.15 <= exp(3) * (without + 0.15)
    assert without > 0.05
    without, with_x = released_after_deletion(keep=False)
    assert without == 0.0
    assert with_x > 0.2
