"""Write posts of a given total size in pieces, with `python -m memory_input FILE BYTES LETTERS`."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROWS = 100_000
WORDS = 24
MOST = 2_000_000


def write_posts(path: Path, size: int, letters: int = 1, seed: int = 0) -> None:
    """Write about `size` bytes, with word frequencies proportional to 1 / rank, and users in random order.

    Each word has at least `letters` letters.
    """
    rng = np.random.default_rng(seed)
    every = pa.array([f"w{rank:0{letters - 1}x}" for rank in range(MOST + 1)], pa.large_string())
    ends = pa.array(np.arange(0, ROWS * WORDS + 1, WORDS, np.int32))
    schema = pa.schema([("who", pa.large_string()), ("text", pa.large_string())])
    written = 0
    with pq.ParquetWriter(path, schema, compression="NONE", use_dictionary=False) as writer:
        while written < size:
            ranks = np.minimum(np.exp(rng.random(ROWS * WORDS) * np.log(MOST)), MOST).astype(np.int64)
            rows = pa.ListArray.from_arrays(ends, every.take(pa.array(ranks)))
            texts = pc.binary_join(rows, pa.scalar(" ", pa.large_string()))
            users = pa.array([f"user {who}" for who in rng.integers(0, 2_000_000, ROWS).tolist()], pa.large_string())
            piece = pa.table([users, texts], schema)
            writer.write_table(piece)
            written += piece.nbytes


if __name__ == "__main__":
    write_posts(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
