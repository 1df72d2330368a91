"""A generator, with a seed, of user-item pairs that are shaped like the AskReddit words of the DPSU paper (Table 1)."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.support.common import OUT
from voxpop.kernels.arrays import Floats, Int32s, Int64s

USERS = 223_388
ITEMS = 200_000
QUANTILES = ((0.0278, 1), (0.2982, 10), (0.7916, 50), (0.9313, 100), (0.9959, 300), (0.99996, 850), (1.0, 2000))
"""The shares of users, each with the largest number of distinct items of these users."""
STEEP_FROM = 5_000
USERS_AT_ONCE = 20_000
EACH = 37.8
"""The mean number of pairs per user."""


def pairs_file(pairs: int) -> Path:
    """Return a file of about this number of pairs in the folder of temporary results, and write it if it is missing."""
    path = OUT / f"pairs-{pairs}.parquet"
    if not path.exists():
        OUT.mkdir(exist_ok=True)
        unfinished = path.with_suffix(".part")
        write_pairs(unfinished, users=round(pairs / EACH))
        unfinished.replace(path)
    return path


def write_pairs(path: str | Path, users: int = USERS, items: int = ITEMS, seed: int = 0) -> None:
    """Write distinct (user, item) pairs to a Parquet file, a few thousand users at a time.

    Set sizes follow Table 1 of the DPSU paper. The popularity of items follows a Zipf law of exponent 1 that steepens
    to 1.6 beyond rank 5,000.

    Args:
        path: The file, with columns user (int32) and item (string).
        users: The number of users.
        items: The number of items in the data.
        seed: The seed that determines the pairs.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_pairs(folder + "/pairs.parquet", users=100, items=1000)
        ...     sorted(pq.read_schema(folder + "/pairs.parquet").names)
        ['item', 'user']
    """
    schema = pa.schema([("user", pa.int32()), ("item", pa.string())])
    names = pa.array([f"item{rank}" for rank in range(items)])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for owner, item in _pairs(users, items, np.random.default_rng(seed)):
            chosen = pa.DictionaryArray.from_arrays(pa.array(item), names).dictionary_decode()
            writer.write_table(pa.table([pa.array(owner), chosen], schema=schema))


def set_sizes(users: int, rng: np.random.Generator) -> Int64s:
    """Draw the number of distinct items of each user, log-linear between the quantiles of Table 1."""
    shares = [0.0, *(share for share, _ in QUANTILES)]
    sizes = [1.0, *(float(size) for _, size in QUANTILES)]
    drawn = np.exp(np.interp(rng.random(users), shares, np.log(sizes)))
    return np.ceil(drawn).astype(np.int64)


def _pairs(users: int, items: int, rng: np.random.Generator) -> Iterator[tuple[Int32s, Int32s]]:
    """Yield owners and items of distinct pairs, some users at a time."""
    ranks = np.arange(1, items + 1, dtype=np.float64)
    popularity = np.where(ranks <= STEEP_FROM, 1 / ranks, STEEP_FROM**0.6 / ranks**1.6)
    cumulative = np.cumsum(popularity) / popularity.sum()
    sizes = np.minimum(set_sizes(users, rng), items // 2)
    for first in range(0, users, USERS_AT_ONCE):
        owners = np.arange(first, min(first + USERS_AT_ONCE, users))
        yield _distinct(owners, sizes[owners], cumulative, rng)


def _distinct(owners: Int64s, sizes: Int64s, cumulative: Floats, rng: np.random.Generator) -> tuple[Int32s, Int32s]:
    """Draw until every user has its number of distinct items. There are no further draws for complete users."""
    items = cumulative.size
    wanted = np.zeros(int(owners[-1]) + 1, np.int64)
    wanted[owners] = sizes
    complete, held = [], np.empty(0, np.int64)
    while owners.size:
        have = np.bincount(held // items, minlength=wanted.size)
        drawn = np.repeat(owners, 2 * (wanted - have)[owners] + 4)
        picks = np.minimum(np.searchsorted(cumulative, rng.random(drawn.size), side="right"), items - 1)
        held = _first_distinct(np.concatenate([held, drawn * items + picks]), items, wanted)
        short = wanted > np.bincount(held // items, minlength=wanted.size)
        complete.append(held[~short[held // items]])
        held, owners = held[short[held // items]], owners[short[owners]]
    pairs = np.concatenate(complete)
    rng.shuffle(pairs)
    return (pairs // items).astype(np.int32), (pairs % items).astype(np.int32)


def _first_distinct(pairs: Int64s, items: int, wanted: Int64s) -> Int64s:
    """Keep each user's first distinct pairs, up to the requested number, in the order drawn."""
    _, first = np.unique(pairs, return_index=True)
    pairs = pairs[np.sort(first)]
    order = np.argsort(pairs // items, kind="stable")
    owners = pairs[order] // items
    place = np.arange(owners.size) - np.searchsorted(owners, owners)
    return pairs[order][place < wanted[owners]]
