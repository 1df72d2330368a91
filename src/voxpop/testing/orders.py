"""A table of made-up orders for examples and tests."""

import random

import polars as pl

_CITIES = {
    "Netherlands": ["Delft", "Leiden", "Zwolle"],
    "Portugal": ["Braga", "Faro", "Porto"],
    "Sweden": ["Lund", "Malmö"],
}
_COMMENTS = ["Thank you", "Fast delivery, thank you", "The box was open", None]
_CHANNELS = ["app", "shop", "web"]
_PRODUCTS = [f"P{number:03}" for number in range(1, 401)]
_ORDERS_EACH = 4
_MONTHS = 6


def orders(customers: int = 6000, seed: int = 1) -> pl.DataFrame:
    """Return a made-up table of orders. Each customer writes a private code into one comment.

    Args:
        customers: The number of customers, each with four orders.
        seed: The seed of the values. The same seed returns the same table.

    Returns:
        A table with the columns customer, order_id, month, country, city, product, channel, amount (in cents) and
        comment.

    Example:
        >>> from voxpop.testing import orders
        >>> table = orders(customers=3)
        >>> table.shape, table["month"][0]
        ((12, 9), '2026-03')
    """
    draw = random.Random(seed)
    demand = [1 / number for number in range(1, len(_PRODUCTS) + 1)]
    rows = []
    for customer in range(customers):
        country = draw.choice(list(_CITIES))
        city = draw.choice(_CITIES[country])
        for order in range(_ORDERS_EACH):
            text = f"my code is {customer}" if order == 0 else draw.choice(_COMMENTS)
            product, channel = draw.choices(_PRODUCTS, demand)[0], draw.choice(_CHANNELS)
            month, amount = f"2026-{draw.randint(1, _MONTHS):02}", draw.randrange(300, 9000, 50)
            number = _ORDERS_EACH * customer + order
            rows.append((customer, number, month, country, city, product, channel, amount, text))
    names = ["customer", "order_id", "month", "country", "city", "product", "channel", "amount", "comment"]
    return pl.DataFrame(rows, schema=names, orient="row")
