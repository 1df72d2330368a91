"""A release every night under one budget for the period, compared with other ways to spend the same budget.

    python -m benchmarks.comparisons.series [posts 30] [posts 365] [chat 30]
    python -m benchmarks.comparisons.series phrases posts 30
The posts are grouped into users of 25 random posts on random nights. The chat keeps the order of its rows. In the
stream *with trends*, half of all words begin on a random night, and their earlier occurrences are removed.
Alternatives:

- *split*: the rows of each night are released separately, with one budget for all nights (`release_each`);
- *doubling dates*: all rows up to 1, 2, 4, ... nights are released, with one budget for all dates;
- *counts with a matrix mechanism*: each user adds an even share to each of its first items, once, and the noise of all
  nights is correlated by the square root of the prefix matrix (after "DP-SQLP", 2023, without its key selection).

The benchmark reads exact private numbers, which is permitted only for research on public data.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from math import sqrt
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import polars as pl
from scipy.optimize import brentq
from scipy.special import ndtr

import voxpop as vp
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.common import DATA
from voxpop.engine.contract import check_engine
from voxpop.engine.local.nights import NightlyPools
from voxpop.mechanisms.series import plan as planning
from voxpop.mechanisms.series.plan import NEVER, NOVELTY_OF_NIGHTS, SeriesPlan
from voxpop.mechanisms.series.series import _gate, _tonight
from voxpop.privacy.gaussian import sigma
from voxpop.privacy.planned import certified
from voxpop.privacy.secret import Secret

BENCHMARK = Benchmark(
    __file__,
    ("series_posts_30", "series_posts_365", "series_chat_30", "series_phrases_chat_30"),
    (*SET_UNION, "mechanisms/series"),
    minutes=8,
    timed=True,
    seeds="1 and 2",
    commands=("posts 30 posts 365 chat 30", "phrases chat 30"),
)
BUDGET = vp.Budget(epsilon=3, delta=1e-6)
PER_PERSON, SEED = 25, 1
LATE = (200, 0.75)
"""The reported words have this number of users before 95 percent of the nights, and begin after this share of
nights."""
Change = Callable[[SeriesPlan], SeriesPlan]
WAYS: dict[str, tuple[str, Change]] = {
    "series, growing spending (default)": ("growing", lambda plan: plan),
    "series, equal spending": ("equal", lambda plan: plan),
    "no resting": ("growing", lambda plan: replace(plan, rests=(NEVER,) * plan.mechanism.nights)),
    "resting, new items not tried": ("growing", lambda plan: replace(plan, tried=0)),
}


def stream(name: str, nights: int, *, pairs: bool = False) -> pl.DataFrame:
    """Return the distinct (user, word, night), and for pairs also the next word as `second`."""
    rng, chat = np.random.default_rng(SEED), name == "chat"
    rows = pl.read_parquet(DATA / ("ubuntu_irc.parquet" if chat else "reddit_posts.parquet"))
    if chat:
        night = np.arange(rows.height) * nights // rows.height
    else:
        rows = rows[rng.permutation(rows.height)]
        people = rows.height // PER_PERSON
        rows = rows[: people * PER_PERSON].with_columns(user=pl.Series(np.arange(people * PER_PERSON) // PER_PERSON))
        enough = nights >= PER_PERSON
        night = np.concatenate([rng.choice(nights, PER_PERSON, replace=not enough) for _ in range(people)])
    words = pl.col("text").str.to_lowercase().str.extract_all(r"[\w']+").alias("word")
    held = rows.with_columns(night=pl.Series(night.astype(np.int32))).select("user", "night", words)
    if pairs:
        second = pl.col("word").list.shift(-1).alias("second")
        return held.with_columns(second).explode("word", "second").drop_nulls().unique(maintain_order=True)
    return held.explode("word").drop_nulls().unique(maintain_order=True)


def with_trends(rows: pl.DataFrame, nights: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the stream in which half of the words begin late, and the first night of each word."""
    rng, words = np.random.default_rng(SEED + 1), rows["word"].unique(maintain_order=True).sort()
    begins = np.where(rng.random(len(words)) < 0.5, rng.integers(0, nights, len(words)), 0)
    first = pl.DataFrame({"word": words, "begins": begins.astype(np.int32)})
    return rows.join(first, on="word").filter(pl.col("night") >= pl.col("begins")).drop("begins"), first


class Seconds(NamedTuple):
    """The duration of a night, and its CPU time."""

    wall: float
    cpu: float


def run_night(plan: SeriesPlan, secret: Secret, pools: NightlyPools, rows: pl.DataFrame, night: int) -> Seconds:
    """Add a night to the state, and return the seconds without reading the rows."""
    corpus = check_engine(vp.read(rows, user="user", items="word"))
    begun = time.perf_counter(), time.process_time()
    gate = _gate(plan, secret)
    gate.begin(pools, corpus, night, *_tonight(plan, night))
    gate.complete(pools, night, *_tonight(plan, night))
    return Seconds(time.perf_counter() - begun[0], time.process_time() - begun[1])


def run(rows: pl.DataFrame, nights: int, way: str) -> tuple[pl.DataFrame, list[int], float]:
    """Return the released words with their nights, the number by night, and the seconds of the last night."""
    spending, change = WAYS[way]
    # Only the first night of each word of a user matters.
    parts = rows.group_by("user", "word").agg(pl.col("night").min()).partition_by("night", as_dict=True)
    none, secret, pools = rows.clear(), Secret.from_seed(SEED), NightlyPools.empty()
    plan = certified(change(vp.Items().plan_series(BUDGET, nights, spending=spending)))  # type: ignore[arg-type]
    for night in range(1, nights + 1):
        took = run_night(plan, secret, pools, parts.get((night - 1,), none), night).wall
    words, out, _ = pools.out(0)
    counts = np.bincount(out, minlength=nights + 1)[1:]
    return pl.DataFrame({"word": words.to_pylist(), "out": out}), np.cumsum(counts).tolist(), took


def late(released: pl.DataFrame, rows: pl.DataFrame, begins: pl.DataFrame, nights: int) -> str:
    """Return the share of late and common words that are released, and the median delay in nights."""
    many, from_ = LATE
    first = rows.group_by("user", "word").agg(pl.col("night").min()).sort("night")
    reached = first.group_by("word").agg(pl.col("night").sort().get(many - 1, null_on_oob=True).alias("reached"))
    common = reached.drop_nulls().join(begins, on="word")
    common = common.filter((pl.col("begins") >= from_ * nights) & (pl.col("reached") < 0.95 * nights))
    out = common.join(released, on="word", how="left")
    delays = (out["out"] - 1 - out["reached"]).fill_null(10 * nights)
    share = 1 - out["out"].null_count() / max(out.height, 1)
    return f"{share:.2f} of {out.height}, {delays.median() if share > 0.5 else 'never'}"


def together(rows: pl.DataFrame, parts: dict[str, pl.DataFrame], limit: int) -> int:
    """Return the number of distinct words in the releases of several tables under one budget."""
    corpora = {name: vp.read(part, user="user", items="word") for name, part in parts.items()}
    released = vp.Items(max_items_per_user=limit).release_each(corpora, BUDGET, seed=SEED)
    return len(set().union(*(each.to_list() for each in released.values())))


def matrix(rows: pl.DataFrame, nights: int, items: int) -> int:
    """Return the number of words released by counts with correlated noise."""
    rng = np.random.default_rng(SEED)
    first = rows.group_by("user", "word").agg(pl.col("night").min()).sort("user", "night", "word")
    used = first.filter(pl.int_range(pl.len()).over("user") < items)
    words, ids = np.unique(used["word"].to_numpy(), return_inverse=True)
    root = np.cumprod([1.0, *((2 * k - 1) / (2 * k) for k in range(1, nights))])
    noise = sigma(BUDGET.epsilon, BUDGET.delta * (1 - NOVELTY_OF_NIGHTS), float(np.linalg.norm(root)))
    spread, share = noise * np.sqrt(np.cumsum(root**2)), 1 / sqrt(items)
    level = brentq(lambda x: items * ndtr(share / spread - x).sum() - NOVELTY_OF_NIGHTS * BUDGET.delta, 0, 40)
    drawn, total, out = (
        rng.standard_normal((nights, words.size), np.float32),
        np.zeros(words.size),
        np.zeros(words.size),
    )
    night, held = used["night"].to_numpy(), np.zeros(words.size, np.bool_)
    for t in range(nights):
        mine = ids[night == t]
        total += share * np.bincount(mine, minlength=words.size)
        held[mine] = True
        noisy = total + noise * (root[: t + 1][::-1].astype(np.float32) @ drawn[: t + 1])
        out += held & (noisy >= level * spread[t])
    return int((out > 0).sum())


def measured(name: str, nights: int) -> list[list[object]]:
    """Return the rows of one collection."""
    rows = stream(name, nights)
    trends, begins = with_trends(rows, nights)
    picks = [max(0, round(nights * part) - 1) for part in (0.1, 0.25, 0.5, 0.75, 1)]
    head = [
        f"{name}, {nights} nights",
        *(f"night {pick + 1}" for pick in picks),
        "with trends",
        "late words",
        "seconds",
    ]
    found: list[list[object]] = [head]
    # A year takes ten minutes for each stream and method, so only two methods run.
    ways = WAYS if nights <= 100 else ("series, growing spending (default)", "no resting")
    for way in ways:
        _, curve, took = run(rows, nights, way)
        released, trend, _ = run(trends, nights, way)
        found.append(
            [way, *(curve[p] for p in picks), trend[-1], late(released, trends, begins, nights), f"{took:.1f}"]
        )
        print(found[-1], flush=True)
    blank: list[object] = [""] * (len(picks) - 1)
    split = {f"n{night}": rows.filter(pl.col("night") == night) for night in range(nights)}
    dates = [min(nights, 2**k) for k in range((nights - 1).bit_length() + 1)]
    others: dict[str, Callable[[], int]] = {
        "split, limit 30": lambda: together(rows, split, 30),
        "doubling dates, limit 100": lambda: together(
            rows, {f"d{date}": rows.filter(pl.col("night") < date) for date in dates}, 100
        ),
        "counts with a matrix mechanism": lambda: max(matrix(rows, nights, items) for items in (30, 100, 300)),
        "one release at the end": lambda: len(
            vp.Items().release(vp.read(rows, user="user", items="word"), BUDGET, seed=SEED)
        ),
    }
    for way, count in others.items():
        found.append([way, *blank, count(), "", "", ""])
        print(found[-1], flush=True)
    return found


def phrases(name: str, nights: int) -> list[list[object]]:
    """Return the cost of phrases in a series, as the words that half of the budget releases, and the pairs in time.

    A pair of adjacent words can be counted from the night on which both words are released.
    """
    rows, texts = stream(name, nights), stream(name, nights, pairs=True)
    whole, _, _ = run(rows, nights, "series, growing spending (default)")
    with patch.object(planning, "gaussian_sigma", lambda *given: sqrt(2) * sigma(*given)):
        half, _, _ = run(rows, nights, "series, growing spending (default)")
    both = texts.group_by("user", "word", "second").agg(pl.col("night").max())
    for column in ("word", "second"):
        both = both.join(whole.select(pl.col("word").alias(column), pl.col("out").alias(f"out {column}")), on=column)
    late = both.filter(pl.max_horizontal("out word", "out second") <= pl.col("night"))
    head = ["collection", "words", "with half of mu^2", "pairs of users and phrases", "after both words"]
    kept = f"{late.height / both.height:.2f}"
    return [head, [f"{name}, {nights} nights", whole.height, f"{half.height / whole.height:.2f}", both.height, kept]]


def main() -> None:
    """Measure, print and write the results."""
    if sys.argv[1:2] == ["phrases"]:
        note = (
            "Phrases are pairs of adjacent released words. The last column is the share of phrases that a user "
            "writes on a night after both words were released."
        )
        name, nights = sys.argv[2], int(sys.argv[3])
        BENCHMARK.table("Phrases in a series", phrases(name, nights), f"series_phrases_{name}_{nights}", note)
        return
    given = sys.argv[1:]
    note = (
        f"Words released by the end of a night at (3, 1e-6) for all nights, seed {SEED}. Late words begin in the last "
        f"quarter of the nights and have {LATE[0]} users in time: the share that is released, and the median number "
        "of nights from the 200th user to the release. Seconds: the last night, on two cores, without its state file."
    )
    for name, nights in zip(given[::2], map(int, given[1::2]), strict=True):
        BENCHMARK.table("A series of nights", measured(name, nights), f"series_{name}_{nights}", note)


if __name__ == "__main__":
    main()
