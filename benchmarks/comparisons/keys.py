"""Keys with counts under one budget: `vp.KeyCounts` against thresholded noisy counts at every truncation.

    python -m benchmarks.comparisons.keys

Each user has some keys, and a release contains keys with numbers of users. Cells contain the mean number of keys, and
the mean over runs of the root mean square error of their numbers.

- *keys with counts*: `vp.KeyCounts(...)` without the sums of other rows, and the entries that ran.
- *rounds + counts*: `Items()` and counts with half of mu^2 each, charged as one release.
- *repeated releases*: 12 and 52 equal releases from one account of (4, 1e-6). Separate releases have the same share of
  epsilon each. With `repeated=True`, the charges add up by squares.
- *rival*: at most L keys per user and one noisy number per key, geometric noise (G) or Gaussian noise (N), with the
  threshold that delta allows. The best L is known only afterwards. It is the L with the most keys among those with no
  larger error (up to 3 percent), or the L with the smallest error among those with no fewer keys.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from math import nan, sqrt
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import brentq
from scipy.stats import norm

import voxpop as vp
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.common import DATA
from voxpop.privacy.composition import compose
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.privacy.truncated import key_levels, least_noise

BENCHMARK = Benchmark(
    __file__,
    ("keys", "keys_repeated"),
    (*SET_UNION, "mechanisms/counts", "mechanisms/profile", "reading/typed_keys"),
    minutes=25,
)
RUNS, RIVAL_RUNS = 20, 10
BUDGETS = (vp.Budget(2, 1e-7), vp.Budget(1, 1e-7), vp.Budget(0.5, 1e-8))
QUIET = vp.ReadOptions(progress=False)
GEOMETRIC, GAUSSIAN = (1, 2, 3, 5, 8), (1, 2, 3, 5, 8, 12, 20)
CLOSE = 1.03
ENTRIES = ("1", "2", "3", "parts", "rounds")
ACCOUNT, REPEATED_RUNS = vp.Budget(4, 1e-6), 5
REPEATED = (
    "4,000 users, 1 key",
    "50,000 users, 1 key",
    "50,000 users, mean 1.5",
    "50,000 users, mean 2.7",
    "chat, all first words",
)
Pairs = tuple[np.ndarray, np.ndarray]
Score = tuple[float, float]


def drawn(users: int, keys: int, numbers: np.ndarray) -> Pairs:
    """Return users with this number of draws of keys each, by Zipf's law with the exponent 1.1.

    Repeated keys count once.
    """
    rng = np.random.default_rng(7)
    chance = 1 / np.arange(1, keys + 1) ** 1.1
    who = np.repeat(np.arange(users), numbers)
    return distinct(who, rng.choice(keys, who.size, p=chance / chance.sum()))


def distinct(users: np.ndarray, keys: np.ndarray) -> Pairs:
    """Return each pair once, by user, with keys from 0."""
    place = np.unique(keys, return_inverse=True)[1]
    both = np.unique(np.stack([users, place], axis=1), axis=0)
    return both[:, 0], both[:, 1]


def geometric(users: int, keys: int, mean: float) -> Pairs:
    """Return users with a geometric number of draws."""
    rng = np.random.default_rng(11)
    return drawn(users, keys, rng.geometric(1 / mean, users) if mean > 1 else np.ones(users, np.int64))


def mixed(users: int) -> Pairs:
    """Return users of whom 70 percent have one draw, and all others have a geometric number of draws with mean 10."""
    rng = np.random.default_rng(13)
    return drawn(users, users // 4, np.where(rng.random(users) < 0.7, 1, rng.geometric(0.1, users)))


def chat(most: int | None = None) -> Pairs:
    """Return the first words of the messages of each user, or a sample of this number of them."""
    table = pl.read_parquet(DATA / "ubuntu_irc.parquet").select(
        "user", word=pl.col("text").str.to_lowercase().str.extract(r"(\S+)")
    )
    table = table.drop_nulls().unique().sort("user", "word")
    users, keys = distinct(*(table[name].rank("dense").to_numpy() for name in table.columns))
    return (users, keys) if most is None else sampled((users, keys), most, np.random.default_rng(17))


def pages(users: int) -> Pairs:
    """Return the categories of the pages of the first visitors of a site."""
    table = pl.read_parquet(DATA / "msnbc.parquet").head(users).explode("sequence")
    return distinct(*(table[name].rank("dense").to_numpy() for name in ("user", "sequence")))


def sampled(pairs: Pairs, most: int, rng: np.random.Generator) -> Pairs:
    """Return at most this number of keys of each user."""
    order = np.lexsort((rng.random(pairs[0].size), pairs[0]))
    users, keys = (each[order] for each in pairs)
    kept = np.arange(users.size) - np.searchsorted(users, users) < most
    return users[kept], keys[kept]


TABLES: dict[str, Callable[[], Pairs]] = {
    "4,000 users, 1 key": partial(geometric, 4000, 400, 1),
    "4,000 users, mean 1.5": partial(geometric, 4000, 400, 1.55),
    "4,000 users, mean 2": partial(geometric, 4000, 400, 2.1),
    "4,000 users, mean 2.7": partial(geometric, 4000, 400, 3),
    "4,000 users, mean 8": partial(geometric, 4000, 2000, 10),
    "4,000 users, 70 % of 1 key": partial(mixed, 4000),
    "50,000 users, 1 key": partial(geometric, 50_000, 5000, 1),
    "50,000 users, mean 1.5": partial(geometric, 50_000, 5000, 1.55),
    "50,000 users, mean 2": partial(geometric, 50_000, 5000, 2.1),
    "50,000 users, mean 2.7": partial(geometric, 50_000, 5000, 3),
    "50,000 users, mean 8": partial(geometric, 50_000, 20_000, 10),
    "50,000 users, 70 % of 1 key": partial(mixed, 50_000),
    "chat, 1 first word": partial(chat, 1),
    "chat, at most 2": partial(chat, 2),
    "chat, at most 3": partial(chat, 3),
    "chat, at most 5": partial(chat, 5),
    "chat, all first words": chat,
    "17 pages, 4,000 users": partial(pages, 4000),
    "17 pages, 50,000 users": partial(pages, 50_000),
}


def score(truth: np.ndarray, keys: np.ndarray, users: np.ndarray) -> Score:
    """Return the number of keys and the root mean square error of their numbers."""
    error = users - truth[keys]
    return float(keys.size), float(np.sqrt((error**2).mean())) if keys.size else nan


def ours(pairs: Pairs, budget: vp.Budget, repeated: bool = False) -> tuple[float, float, float]:
    """Return the score of one release, and the entry that ran."""
    plan, corpus = prepared(pairs, budget, repeated)
    found = plan.release(corpus)
    table = found.counts("key")
    numbers = (table[name].to_numpy() for name in ("key", "users"))
    return (*score(np.bincount(pairs[1]), *numbers), float(found.plan.chosen or 0))


def prepared(pairs: Pairs, budget: vp.Budget, repeated: bool = False) -> tuple[Any, Any]:
    """Return the plan and the data."""
    table = pl.DataFrame({"user": pairs[0], "key": pairs[1].astype(np.int64)})
    keyed = vp.KeyCounts.of(table, user="user", joint=[("key",)], other_rows=False, repeated=repeated)
    return keyed.plan(budget), keyed.read(table, user="user", options=QUIET)


def halves(pairs: Pairs, budget: vp.Budget) -> Score:
    """Return the score of `Items` and counts that share mu^2. The delta of novel keys is charged once."""
    corpus = vp.read(pl.DataFrame({"user": pairs[0], "key": pairs[1]}), user="user", items="key", options=QUIET)
    mu = brentq(lambda m: gaussian_delta(budget.epsilon, m) - 0.6 * budget.delta, 1e-3, 20) / sqrt(2)

    def with_delta(share: float) -> vp.Budget:
        found = brentq(lambda e: gaussian_delta(e, mu) - share * budget.delta, 1e-3, budget.epsilon)
        return vp.Budget(round(found, 6), budget.delta)

    words = vp.Items().release(corpus, with_delta(0.6))
    counted = words.count(corpus, with_delta(1.0)).to_polars()
    return score(np.bincount(pairs[1]), *(counted[name].to_numpy().astype(np.int64) for name in ("key", "users")))


def rival(pairs: Pairs, budget: vp.Budget, noise: str, most: int) -> Score:
    """Return the score of one noisy number per key, with at most this number of keys per user."""
    rng, truth = np.random.default_rng(), np.bincount(pairs[1])
    users = np.bincount(sampled(pairs, most, rng)[1], minlength=truth.size)
    if noise == "G":
        each = least_noise(most, Fraction(budget.epsilon) / most, budget.delta / most)
        level = key_levels(each, users, rng.integers(0, 2**64, (users.size, 2), np.uint64, endpoint=False))
        level[users == 0] = 0
        keys = np.flatnonzero(level)
        return score(truth, keys, level[keys] + each.reach - 1)
    mu = brentq(lambda m: gaussian_delta(budget.epsilon, m) - 0.6 * budget.delta, 1e-3, 20)
    sigma = sqrt(most) / mu
    noisy = users + rng.normal(0, sigma, users.size)
    keys = np.flatnonzero((noisy >= 1 + sigma * norm.isf(0.4 * budget.delta / most)) & (users > 0))
    return score(truth, keys, np.round(noisy[keys]))


def means(runs: Sequence[Sequence[float]]) -> Score:
    """Return the mean number of keys, and the mean error of the runs that released keys."""
    return float(np.mean([each[0] for each in runs])), float(np.nanmean([each[1] for each in runs]))


def shown(found: Score | None, name: str = "") -> str:
    """Return a cell."""
    return "none" if found is None else f"{found[0]:.4g}, {found[1]:.3g}{name and f' ({name})'}"


def row(cells: object, name: str, pairs: Pairs, budget: vp.Budget) -> list[object]:
    """Measure one table at one budget."""
    get, place = cells.get, [name, f"{budget.epsilon:g}"]  # type: ignore[attr-defined]
    mine = [get([*place, "keys", f"run {run}"], partial(ours, pairs, budget)) for run in range(RUNS)]
    both = [get([*place, "halves", f"run {run}"], partial(halves, pairs, budget)) for run in range(RUNS)]
    rivals = {}
    for kind, truncations in (("G", GEOMETRIC), ("N", GAUSSIAN)):
        for most in truncations:
            measure = partial(rival, pairs, budget, kind, most)
            runs = [get([*place, f"{kind} {most}", f"run {run}"], measure) for run in range(RIVAL_RUNS)]
            rivals[f"{kind} {most}"] = means(runs)
    keys, error = means(mine)
    ran = Counter(int(each[2]) for each in mine)
    entries = ", ".join(f"{ENTRIES[entry]} ({runs})" for entry, runs in sorted(ran.items()))
    exact = [each for each in rivals.items() if each[1][1] <= error * CLOSE]
    wide = [each for each in rivals.items() if each[1][0] >= keys / CLOSE]
    most_keys = max(exact, key=lambda each: each[1][0], default=None)
    least_error = min(wide, key=lambda each: each[1][1], default=None)
    ahead = any(k > keys * CLOSE and e < error / CLOSE for k, e in rivals.values())
    return [
        f"{budget.epsilon:g}, {budget.delta:g}",
        name,
        entries,
        shown((keys, error)),
        shown(means(both)),
        shown(*most_keys[::-1]) if most_keys else "none",
        shown(*least_error[::-1]) if least_error else "none",
        "yes" if ahead else "no",
    ]


def largest_epsilon(releases: int) -> float:
    """Return the largest epsilon at which an account admits this number of equal releases with `repeated=True`."""
    keyed = vp.KeyCounts({"key": "int64"}, [("key",)], other_rows=False, repeated=True)

    def exceeds(epsilon: float) -> float:
        each = keyed.plan(vp.Budget(epsilon, ACCOUNT.delta / releases)).guarantee
        return compose([each] * releases).epsilon - ACCOUNT.epsilon

    return float(brentq(exceeds, ACCOUNT.epsilon / releases, ACCOUNT.epsilon, xtol=1e-3)) - 1e-3


def repeated_rows(cells: object, tables: dict[str, Pairs]) -> list[list[object]]:
    """Measure one of many releases, with separate budgets and with `repeated=True`."""
    get = cells.get  # type: ignore[attr-defined]
    rows: list[list[object]] = [["releases", "table", "epsilon apart", "apart", "epsilon repeated", "repeated"]]
    for releases in (12, 52):
        epsilons = (ACCOUNT.epsilon / releases, largest_epsilon(releases))
        for name in REPEATED:
            cell: list[object] = [releases, name]
            for repeated, epsilon in enumerate(epsilons):
                budget = vp.Budget(epsilon, ACCOUNT.delta / releases)
                measure = partial(ours, tables[name], budget, bool(repeated))
                runs = [get([name, f"{releases}", f"{repeated}", f"run {n}"], measure) for n in range(REPEATED_RUNS)]
                cell += [f"{epsilon:.3g}", shown(means(runs))]
            rows.append(cell)
    return rows


def main() -> None:
    """Measure, print and write the results."""
    cells = BENCHMARK.cells()
    head = ["budget", "table", "entry (runs)", "keys with counts", "rounds + counts"]
    rows: list[list[object]] = [[*head, "rival, error no larger", "rival, keys no fewer", "a rival ahead in both"]]
    tables = {name: make() for name, make in TABLES.items()}
    for budget in BUDGETS:
        for name, pairs in tables.items():
            rows.append(row(cells, name, pairs, budget))
            print(" | ".join(map(str, rows[-1])), flush=True)
    spent = f"({ACCOUNT.epsilon:g}, {ACCOUNT.delta:g})"
    few = f"Each row is one of many equal releases from one account of {spent}; means of {REPEATED_RUNS}."
    BENCHMARK.table("Keys with counts, many times", repeated_rows(cells, tables), "keys_repeated", few)
    note = (
        f"Keys and root mean square error of their numbers, means of {RUNS} releases; of rivals, of {RIVAL_RUNS}. "
        "The best truncation of a rival is chosen afterwards. Ahead in both: more keys and a smaller error, each by "
        "more than 3 percent."
    )
    BENCHMARK.table("Keys with counts", rows, "keys", note)


if __name__ == "__main__":
    main()
