"""Made-up tables of a shop, with orders of four keys and comments of real chat, and a wide table of integers."""

import numpy as np
import polars as pl
from numpy.typing import NDArray


def zipf(size: int, power: float) -> NDArray[np.float64]:
    """Return probabilities that decrease with a power of the rank."""
    weights = 1 / np.arange(1, size + 1) ** power
    return weights / weights.sum()


def orders(texts: list[str], rows: int = 200_000, users: int = 40_000, seed: int = 7) -> pl.DataFrame:
    """Return orders by customers of uneven activity, with country, city, products of local taste, and channel."""
    rng = np.random.default_rng(seed)
    busy = rng.permutation(users)[(rng.pareto(1.3, rows) * users / 12).astype(np.int64) % users]
    customer = np.concatenate([np.arange(users), busy])[:rows]
    country = rng.choice(25, users, p=zipf(25, 1.1))
    cities = np.maximum(4, (400 * zipf(25, 0.8) / zipf(25, 0.8)[0]).astype(np.int64))
    first = np.concatenate([[0], np.cumsum(cities)])
    city = np.array([first[each] + rng.choice(cities[each], p=zipf(int(cities[each]), 0.9)) for each in country])
    # Six of a hundred orders go to the address of another customer.
    of = np.where(rng.random(rows) < 0.06, rng.integers(0, users, rows), customer)
    product, local = rng.choice(6000, rows, p=zipf(6000, 1.0)), rng.random(rows) < 0.4
    product = np.where(local, (product * 7 + country[of] * 211) % 6000, product)
    channel = rng.choice(5, rows, p=[0.45, 0.3, 0.15, 0.07, 0.03])
    channel = np.where(country[of] % 3 == 0, (channel + 1) % 5, channel)
    comments = [texts[place] for place in rng.integers(0, len(texts), rows)]
    said = rng.random(rows) < 0.3
    keys = {"country": country[of], "city": city[of], "product": product, "channel": channel}
    return pl.DataFrame(
        {
            "customer": customer,
            **{name: np.char.add(name[:2], values.astype(str)) for name, values in keys.items()},
            "comment": [comment if each else None for comment, each in zip(comments, said, strict=True)],
        }
    )


def wide(rows: int, columns: int, users: int, seed: int = 7) -> pl.DataFrame:
    """Return columns of integers with 10 to 100,000 values each."""
    rng = np.random.default_rng(seed)
    sizes = np.geomspace(10, 100_000, columns).astype(np.int64)
    values = {f"c{number}": (rng.pareto(1.0, rows) * 3).astype(np.int64) % size for number, size in enumerate(sizes)}
    return pl.DataFrame({"user": rng.integers(0, users, rows), **values})
