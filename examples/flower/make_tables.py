"""Three tables, one for each node, of 400 users: most users have one of three words, the others a unique word."""

import polars as pl

for node in range(3):
    users = range(node * 400, node * 400 + 400)
    words = [["sun", "star", "moon"][user % 3] if user % 5 else f"secret{user}" for user in users]
    pl.DataFrame({"who": users, "what": words}).write_parquet(f"node{node}.parquet")
