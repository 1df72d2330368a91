"""Tests of the meaning of queries of a model, and of the coverage of their intervals."""

from collections import Counter

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from support.look import read_engine
from voxpop.kernels.sequences import count_reaching
from voxpop.mechanisms.sequences.context_tree import plain_starts, shortened
from voxpop.mechanisms.sequences.profile import even_lengths, length_classes
from voxpop.mechanisms.sequences.queries import Sessions, commonest_runs, containing, followers

PAGES = ["a", "b", "c", "d", "e"]
LONGEST = 6
RELEASES = 80
SPREADS = {
    "starting": (0.9, 0.13),
    "transitions": (0.96, 0.04),
    "lengths": (0.93, 0.11),
    "funnel": (0.98, 0.14),
}
"""The means (rounded down) and standard deviations (rounded up) of the coverage in 80 releases with fresh secrets."""
BOUNDS = {"starting": (0.68, 1.0), "transitions": (0.86, 0.995), "lengths": (0.76, 1.0), "funnel": (0.79, 1.0)}


def naive_reach(session, steps, within):
    """Return the number of steps of a funnel that one session reaches, computed by trying every position."""

    def tail(place, step):
        if step == len(steps):
            return 0
        stop = len(session) if step == 0 else min(len(session), place + within + 1)
        reached = [1 + tail(at, step + 1) for at in range(place + 1, stop) if session[at] == steps[step]]
        return max(reached, default=0)

    return tail(-1, 0)


def laid(sessions):
    starts = np.concatenate([[0], np.cumsum([len(each) for each in sessions])]).astype(np.int64)
    return np.array([symbol for each in sessions for symbol in each], np.int32), starts


@pytest.mark.parametrize("seed", range(40))
def test_funnels_equal_a_reference_implementation(seed):
    """Sessions and funnels are random, with repeated steps and few or many symbols between the steps."""
    rng = np.random.default_rng(seed)
    sessions = [rng.integers(3, size=rng.integers(1, 9)).tolist() for _ in range(60)]
    steps, within = rng.integers(3, size=rng.integers(1, 5)), int(rng.integers(1, 6))
    reached = np.array([naive_reach(each, steps.tolist(), within) for each in sessions])
    expected = [(reached > step).sum() for step in range(steps.size)]
    assert count_reaching(*laid(sessions), steps.astype(np.int32), within).tolist() == expected


def test_a_path_counts_each_session_once():
    """A path that occurs twice in a session counts once, and no path spans two sessions."""
    sessions = Sessions(*laid([[0, 1, 0, 1], [1, 0], [0, 1]]))
    assert commonest_runs(sessions, 2, 9, 2) == [(0, 1), (1, 0)]
    assert containing(sessions, [(1, 0), (0, 1), (1, 1)], 2) == pytest.approx([2 / 3, 2 / 3, 0])


@pytest.mark.parametrize("seed", range(20))
def test_frequent_paths_equal_a_reference_implementation(seed):
    """The results are the most frequent paths (ties in the order of symbols) and the share of sessions with each."""
    rng = np.random.default_rng(seed)
    size, length = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    lists = [rng.integers(size, size=rng.integers(1, 7)).tolist() for _ in range(rng.integers(1, 30))]
    held = Counter(run for each in lists for run in {tuple(each[at : at + length]) for at in range(len(each))})
    held = Counter({run: count for run, count in held.items() if len(run) == length})
    expected = sorted(held, key=lambda run: (-held[run], run))[:5]
    sessions = Sessions(*laid(lists))
    assert commonest_runs(sessions, length, 5, size) == expected
    assert containing(sessions, expected, size) == pytest.approx([held[run] / len(lists) for run in expected])


@pytest.fixture(scope="module")
def chain():
    """Return a first-order Markov chain as the probabilities of the first symbol, and of each next symbol or end."""
    rng = np.random.default_rng(11)
    start, steps = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(6), 5)
    return start, steps


def sessions_of(chain, number, rng):
    start, steps = chain
    symbols = np.full((number, LONGEST), -1)
    symbols[:, 0] = (rng.random((number, 1)) > np.cumsum(start)[None, :-1]).sum(axis=1)
    for place in range(1, LONGEST):
        on = np.flatnonzero(symbols[:, place - 1] >= 0)
        sums = np.cumsum(steps[symbols[on, place - 1]], axis=1)
        drawn = (rng.random((on.size, 1)) > sums[:, :-1]).sum(axis=1)
        symbols[on, place] = np.where(drawn == 5, -1, drawn)
    return [[int(x) for x in row if x >= 0] for row in symbols]


def answers_of(sessions):
    """Return the exact results of the tested queries on the private sessions."""
    first, pairs = np.zeros(5), np.zeros((5, 6))
    for session in sessions:
        first[session[0]] += 1
        for one, other in zip(session, [*session[1:], 5], strict=True):
            pairs[one, other] += 1
        if len(session) == LONGEST:
            pairs[session[-1], 5] -= 1
    reached = np.array([naive_reach(session, [0, 1], 2) for session in sessions])
    sizes = np.bincount([len(session) for session in sessions], minlength=LONGEST + 1)[1:]
    lengths = sizes / len(sessions)
    return first / len(sessions), pairs / pairs.sum(axis=1, keepdims=True), (reached > 1).mean(), lengths


def false_alarm(mean, deviation, low, high):
    """Bound the probability that a mean of `RELEASES` independent numbers in [0, 1] is out of range (Bennett, 1962)."""

    def beyond(by, most):
        u = most * by / deviation**2
        return np.exp(-RELEASES * (deviation / most) ** 2 * ((1 + u) * np.log1p(u) - u))

    return beyond(mean - low, mean) + (beyond(high - mean, 1 - mean) if high < 1 else 0)


@pytest.mark.slow
def test_intervals_have_their_nominal_coverage(chain):
    """In 80 releases, nine of ten intervals of first symbols, transitions, lengths and funnels cover the truth.

    The probability of a false alarm is below 1e-9, by Bennett's inequality for means of independent numbers between 0
    and 1 with the means and deviations in `SPREADS`. Transitions are the most sensitive case, because each release has
    30 of them. Their intervals cover more than 0.9, because the error of a shorter memory is added to the error of the
    noise. All other queries have no upper bound, because 80 releases are too few to detect wider intervals.
    """
    assert sum(false_alarm(*SPREADS[name], *bounds) for name, bounds in BOUNDS.items()) < 1e-9
    sessions = sessions_of(chain, 20_000, np.random.default_rng(3))
    first, pairs, bound, lengths = answers_of(sessions)
    frame = pl.DataFrame({"who": range(len(sessions)), "pages": [[PAGES[x] for x in each] for each in sessions]})
    corpus = read_engine(frame, user="who", sequence="pages")
    held = {"starting": [], "transitions": [], "funnel": [], "lengths": []}
    for _ in range(RELEASES):
        model = vp.Sequences(max_length=LONGEST, max_gram=3, alphabet=PAGES).release(corpus, vp.Budget(0.5))
        asked = {
            "starting": (model.starting().sort("symbol"), first),
            "transitions": (model.transitions().sort("from", "symbol", nulls_last=True), pairs.ravel()),
            "funnel": (model.funnel(["a", "b"], within=2)[1:], np.array([bound])),
            "lengths": (model.lengths(), lengths),
        }
        for name, (frame, exact) in asked.items():
            held[name].append(((frame["low"].to_numpy() <= exact) & (exact <= frame["high"].to_numpy())).mean())
    shares = {name: float(np.mean(each)) for name, each in held.items()}
    print({name: (round(float(np.mean(each)), 3), round(float(np.std(each)), 3)) for name, each in held.items()})
    assert all(BOUNDS[name][0] < share <= BOUNDS[name][1] for name, share in shares.items()), shares


def test_shares_add_up_to_one_and_paths_are_in_order(model):
    """Each share is between its bounds, and the shares of a funnel do not increase."""
    following = model.next(["home"], level=0.9).rename({"probability": "share"})
    assert following["share"].sum() == pytest.approx(1)
    assert (following["low"] <= following["share"]).all()
    assert (following["share"] <= following["high"]).all()
    assert dict(model.starting().select("symbol", "share").iter_rows())["home"] == pytest.approx(0.6, abs=0.08)
    assert model.ending()["share"].sum() == pytest.approx(1)
    assert model.lengths()["length"].to_list() == list(range(1, 9))
    assert model.transitions().group_by("from").agg(pl.col("share").sum())["share"].to_list() == pytest.approx([1] * 4)
    paths = model.paths(length=2, number=5)
    assert len(paths) == 5
    assert paths["share"].is_sorted(descending=True)
    funnel = model.funnel(["home", "home"], within=1)
    assert funnel["step"].to_list() == ["home", "home"]
    assert funnel["share"][0] >= funnel["share"][1]


def test_wrong_queries_are_rejected(model):
    """The cases are levels, steps and distances that are out of range, and an unknown symbol."""
    with pytest.raises(vp.errors.InputError, match="level"):
        model.next(level=1)
    with pytest.raises(vp.errors.InputError, match="at least one step"):
        model.funnel([])
    with pytest.raises(vp.errors.InputError, match="not in the alphabet"):
        model.funnel(["nowhere"])
    with pytest.raises(vp.errors.InputError, match="within"):
        model.funnel(["home"], within=0)


@pytest.fixture(scope="module")
def closing():
    """Return a model of users whose sequences end with one symbol, so that contexts determine where they end."""
    rng = np.random.default_rng(4)
    # Few users have 9, 11 or 13 symbols, which the released classes of length do not show.
    sizes = rng.choice(np.arange(1, 14), 2000, p=np.array([1, 3, 9, 5, 5, 5, 5, 5, 1, 9, 1, 9, 1]) / 59)
    pages = [[*rng.choice(["a", "b"], size - 1).tolist(), "z"] for size in sizes.tolist()]
    corpus = read_engine(pl.DataFrame({"who": range(2000), "pages": pages}), user="who", sequence="pages")
    return vp.Sequences(max_length=15, max_gram=3, alphabet=["a", "b", "z"]).release(corpus, vp.Budget(2), seed=3)


@pytest.mark.jit  # Without compiled kernels, there are fewer bootstrap models, so errors are less accurate.
def test_intervals_of_lengths_include_the_error_of_classes(closing):
    """Users are counted only in classes such as 6 to 8, so the share of each length in its class is uncertain."""
    frame, users = closing.lengths(), closing.n_users
    share, error = frame["share"].to_numpy(), frame["error"].to_numpy()
    for first, last in [(4, 5), (6, 8), (9, 13)]:
        mine = slice(first - 1, last)
        deviation = np.sqrt(share[mine] * (1 - share[mine] / share[mine].sum()) / users)
        assert (error[mine] > 0.7 * deviation).all()


def test_shares_of_lengths_agree_with_the_released_shares(closing):
    """The shares of each class add up to the released share, and intervals of single lengths contain it."""
    frame, profile, users = closing.lengths(), closing.profile, closing.n_users
    starts = np.append(length_classes(15), 16) - 1
    for place, released in enumerate(profile.lengths.tolist()):
        some = frame[int(starts[place]) : int(starts[place + 1])]
        share = max(released, 0) / users
        assert some["share"].sum() == pytest.approx(share, abs=2 * profile.scales[0] / users)
        if some.height == 1:
            assert some["low"][0] <= share <= some["high"][0]


def test_simpler_models_have_shorter_contexts(model, symbols_alone):
    """Leaves have the probabilities of their parents, except for first symbols and kept contexts."""
    tree, smoothed = model.tree, model._sampler.smoothed
    starts = int(tree.child[tree.width - 1])
    for kept in (0, 1):
        chances = shortened(tree, smoothed, kept).chances
        for node in range(tree.nodes):
            is_leaf, is_short = node not in tree.parents, tree.depths[node] <= kept
            taken = tree.parents[node] if is_leaf and not is_short and node != starts else node
            assert (chances[node] == smoothed.chances[taken]).all()
    chances = shortened(symbols_alone.tree, symbols_alone._sampler.smoothed, 0).chances[0]
    assert chances.sum() == pytest.approx(1)
    assert np.ptp(chances[:-1]) == 0
    assert chances[-1] == symbols_alone._sampler.smoothed.chances[0, -1]


def test_errors_include_the_distance_to_simpler_models(model):
    """The errors of funnels, transitions and lengths are at least the distance to the result of each simpler model."""
    steps = np.array([model.alphabet.index(symbol) for symbol in ("news", "home")], np.int32)

    def covers(answers, other):
        return (answers["error"].to_numpy() >= np.abs(answers["share"].to_numpy() - other)).all()

    for _, sessions in model._queries._simpler_models(0):
        other = count_reaching(sessions.symbols, sessions.starts, steps, 8) / sessions.size
        assert covers(model.funnel(["news", "home"]), other)
    for simpler, sessions in model._queries._simpler_models(1):
        assert covers(model.transitions(), followers(simpler, sessions, number=np.arange(5), rows=4))
    even = even_lengths(model._sampler.fit)
    assert covers(model.lengths(), even)
    firsts = length_classes(8) - 1
    np.testing.assert_allclose(np.add.reduceat(even, firsts), np.add.reduceat(model._sampler.fit.lengths, firsts))


def test_intervals_of_first_symbols_contain_the_released_shares(model):
    """The released share of each first symbol is in its interval, although smoothing increases small shares."""
    (released,) = plain_starts(model.tree)
    found = dict(model.starting().select("symbol", pl.struct("low", "high")).iter_rows())
    for symbol, share in zip(model.alphabet, released[:-1].tolist(), strict=True):
        assert found[symbol]["low"] <= share <= found[symbol]["high"]


def test_models_of_single_symbols_have_no_released_first_symbols(symbols_alone):
    """If only single symbols are counted, errors of first symbols include their distance from equal shares."""
    assert plain_starts(symbols_alone.tree) == []
    found = symbols_alone.starting()
    assert (found["error"] >= (found["share"] - 0.25).abs()).all()
