"""Public candidates: items of a public list beside unknown items, on the code that releases (docs/privacy/known.md)."""

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from voxpop.engine.contract import check_engine
from voxpop.kernels.arrays import DROPPED, RELEASED
from voxpop.mechanisms.rounds.menu import released_in_rounds
from voxpop.privacy.cumulative import ScoreStep
from voxpop.privacy.decisions import ReleaseDecisions
from voxpop.privacy.gate.rounds import AdaptiveGate, PublicParts
from voxpop.privacy.secret import Secret
from voxpop.reading.arrow import text_buffers

BUDGET = vp.Budget(2, 1e-5)
QUIET = vp.ReadOptions(progress=False)


def corpus_of(users, keys=None):
    """Return the corpus of users with these items."""
    keys = range(len(users)) if keys is None else keys
    rows = [(f"u{key}", item) for key, items in zip(keys, users, strict=True) for item in items]
    table = pl.DataFrame(rows, schema={"who": pl.String, "what": pl.String}, orient="row")
    return vp.read(table, user="who", items="what", options=QUIET)


# The search: neighbours through whole releases, with outcomes that follow from names only.


class Watch:
    """Weights by pass and item, with outcomes of each round that do not depend on weights.

    Args:
        patch: of the test.
        smaller: the run without the extra user; novel items are then never released. None in that run.
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
        """Return the items that get noise in later rounds."""
        return {name for purpose, name in self.weights if purpose != "first"}


def pairs(count, seed=0):
    """Yield small collections with one user more: the users, the keys, and the list.

    The list has items of all users, items of the extra user only, and items of nobody.
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
    """Return the plan for a list of 30 items; a shorter list may run under it."""
    return replace(union, known=[f"i{number}" for number in range(30)]).plan(BUDGET)


def searched(monkeypatch, union, cases, seed=0):
    """Return the largest squared distance relative to the planned mu^2, and whether public outcomes agreed."""
    worst, same = 0.0, True
    plan = planned(union)
    for number, (users, extra, listed, keys) in enumerate(pairs(cases, seed)):
        rounds, ran, found = plan.passes[0], [], []
        parts = PublicParts([pa.array(listed, pa.large_string())], text_buffers)
        for mine, places in ((users, keys[1:]), ([*users, extra], [*keys[1:], keys[0]])):
            with monkeypatch.context() as patch:
                ran.append(Watch(patch, *ran))
                gate = AdaptiveGate(plan.certificate.to_json(), Secret.from_seed(number))
                words, _ = released_in_rounds(rounds, gate, check_engine(corpus_of(mine, places)), parts)
                found.append(set(words.to_pylist()))
        smaller, larger = ran
        # Items of the list are shared, whoever has them.
        names = Secret.from_seed(number).text_draws("words", *text_buffers(parts.parts[0]))[:, 0]
        shared = smaller.shared() | set(names.tolist())
        same &= {each for each in larger.weights if each[1] in shared and each[0] != "first"} == {
            each for each in smaller.weights if each[0] != "first"
        }
        # The same listed items are released, whoever has them.
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


UNIONS = {"all drawn": vp.SetUnion(limit=40), "some drawn": vp.SetUnion(limit=3), "one": vp.SetUnion(limit=1)}


@pytest.mark.parametrize("name", UNIONS)
def test_one_user_moves_shared_items_by_at_most_what_is_charged(monkeypatch, name):
    """Items of the list are shared, also those that only the extra user has; every round has noise on all of them."""
    worst, same = searched(monkeypatch, UNIONS[name], 40)
    assert same
    assert 0.3 < worst <= 1 + 1e-9


def test_noise_on_items_of_users_only_is_detected(monkeypatch):
    """Deliberately broken (the first round): listed items that nobody has get no noise, so that only a user adds it."""
    real = AdaptiveGate._reached_by_noise
    nothing = lambda gate, rounds, letters, starts: np.zeros(starts.size - 1, np.uint8)  # noqa: E731
    monkeypatch.setattr(AdaptiveGate, "_reached_by_noise", nothing)
    assert not searched(monkeypatch, UNIONS["some drawn"], 20)[1]
    monkeypatch.setattr(AdaptiveGate, "_reached_by_noise", real)
    assert searched(monkeypatch, UNIONS["some drawn"], 20)[1]


def test_a_first_round_that_knows_the_list_is_detected(monkeypatch):
    """Deliberately broken (K1): listed items are released in the first round if they have weight there.

    Others have the item and drew different ones; it then leaves their pools only if the extra user drew it.
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
    original = AdaptiveGate.rounds

    def remembered(self, listed):
        LISTED_NOW.clear()
        LISTED_NOW.update(*(part.to_pylist() for part in listed.parts))
        return original(self, listed)

    monkeypatch.setattr(AdaptiveGate, "rounds", remembered)
    worst, same = searched(monkeypatch, UNIONS["some drawn"], 150)
    assert worst > 1.02 or not same


LISTED_NOW = set()


def test_a_list_made_from_the_data_is_detected(monkeypatch):
    """Deliberately broken (K4): the list is cut to items that users have, so one user changes it."""
    original = AdaptiveGate._with_listed

    def with_held(self, rounds, known, listed, found):
        held = set(self._pools._vocabulary.to_pylist())
        (part,) = listed.parts
        parts = [part.filter(pa.array([each in held for each in part.to_pylist()], pa.bool_()))]
        return original(self, rounds, known, PublicParts(parts, text_buffers), found)

    monkeypatch.setattr(AdaptiveGate, "_with_listed", with_held)
    assert not searched(monkeypatch, UNIONS["some drawn"], 20)[1]
