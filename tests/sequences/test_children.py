"""Children of small and of large alphabets: two ways to draw them, one law."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest

from voxpop.privacy.secret import Secret
from voxpop.sequences import children
from voxpop.sequences.children import Candidates, released_children
from voxpop.sequences.limits import Limits
from voxpop.sequences.path_budget import PathBudget

SIGMAS = 7.0  # a normal deviate passes this with probability 2.6e-12
HELD = {0: 9, 3: 2, 6: 30}  # symbol 6 is the end mark


def many_rows(rows, dense, monkeypatch):
    """The children of equal nodes: six symbols, three of seven children held."""
    monkeypatch.setattr(children, "DENSE", 1024 if dense else 1)
    limits = Limits(Fraction(3), alphabet=6, max_length=2, max_gram=2, keep_all=False)
    paths = PathBudget(limits.epsilon, 2, 6)
    share = paths.open(paths.open_root(2), 1)
    entries = np.arange(rows)
    candidates = Candidates(entries, np.full(rows, share), np.ones(rows, np.int64), first=1)
    keys = (entries[:, None] * 7 + np.array(list(HELD))).ravel()
    order = np.random.default_rng(0).permutation(keys.size)
    counts = np.tile(list(HELD.values()), rows)
    level = released_children(limits, paths, candidates, keys[order], counts[order], Secret.fresh())
    return level, paths.least(share), exp(-paths.rate(share))


@pytest.mark.parametrize("dense", [True, False])
def test_both_ways_release_with_the_exact_probabilities(dense, monkeypatch):
    """Each child's release and its most likely counts have their exact frequencies (false alarm below 1e-9)."""
    rows = 40_000
    level, least, a = many_rows(rows, dense, monkeypatch)
    assert (np.diff(level.rows * 7 + level.symbols) > 0).all()
    assert level.counts.min() >= least
    for symbol in range(7):
        true = HELD.get(symbol, 0)
        mine = level.counts[level.symbols == symbol]
        at_least = lambda m: a**m / (1 + a) if m > 0 else 1 - a ** (1 - m) / (1 + a)  # noqa: E731
        chance = at_least(least - true)
        assert abs(mine.size - rows * chance) < SIGMAS * (rows * chance * (1 - chance)) ** 0.5 + 3, symbol
        for value in (least, least + 1, max(true, least)):
            chance = at_least(value - true) - at_least(value + 1 - true)
            assert abs((mine == value).sum() - rows * chance) < SIGMAS * (rows * chance) ** 0.5 + 3


def test_children_of_one_node_are_independent(monkeypatch):
    """Two unsupported children come out together as often as the product says (false alarm below 1e-9)."""
    rows = 200_000
    level, least, a = many_rows(rows, False, monkeypatch)
    shown = np.zeros((rows, 7), np.bool_)
    shown[level.rows, level.symbols] = True
    chance = a**least / (1 + a)
    for one, other in ((1, 2), (2, 5), (4, 5)):
        both = (shown[:, one] & shown[:, other]).sum()
        assert abs(both - rows * chance**2) < SIGMAS * (rows * chance**2) ** 0.5 + 7


def test_a_huge_alphabet_costs_what_is_released():
    """A hundred thousand nodes of a million symbols each: about half a false child per node, none drawn in vain."""
    limits = Limits(Fraction(1), alphabet=10**6, max_length=5, max_gram=2, keep_all=False)
    paths = PathBudget(limits.epsilon, 5, 10**6)
    share = paths.open(paths.open_root(2), 1)
    rows = 100_000
    candidates = Candidates(np.arange(rows), np.full(rows, share), np.ones(rows, np.int64), first=1)
    none = np.empty(0, np.int64)
    level = released_children(limits, paths, candidates, none, none, Secret.from_seed(1))
    expected = rows * (10**6 + 1) * exp(-paths.rate(share) * paths.least(share)) / (1 + exp(-paths.rate(share)))
    assert abs(level.symbols.size - expected) < SIGMAS * expected**0.5
    assert level.symbols.max() <= 10**6


def test_the_root_has_no_end_mark(monkeypatch):
    """However many empty trees are planted, the end mark is never a child of the root, in either way."""
    for dense, keep_all in ((1024, True), (1024, False), (1, False)):
        monkeypatch.setattr(children, "DENSE", dense)
        limits = Limits(Fraction(1), alphabet=2, max_length=5, max_gram=1, keep_all=keep_all)
        for seed in range(200):
            paths = PathBudget(limits.epsilon, 5, 2)
            root = Candidates(np.array([-1]), np.array([paths.open_root(1)]), np.array([1]), first=0)
            none = np.empty(0, np.int64)
            level = released_children(limits, paths, root, none, none, Secret.from_seed(seed))
            assert level.symbols.max(initial=0) < 2
