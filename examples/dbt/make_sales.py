"""Write the private table of the example, with one shop that only one customer visits."""

from pathlib import Path

import polars as pl

Path("seeds").mkdir(exist_ok=True)
rows = [(customer, f"shop {customer % 4}") for customer in range(2000)] + [(7, "the clinic")]
pl.DataFrame(rows, schema=["customer", "shop"], orient="row").write_csv("seeds/sales.csv")
