"""Event logs by `Sequences`, compared with trace variants of pm4py and with AIM on a flattened table.

    python -m benchmarks.comparisons.process_field

The packages run in the environment of peers (`benchmarks/peers/process_models.py`). The program reads exact private
numbers, which is permitted only for research on public data.
"""

import subprocess
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from benchmarks.comparisons.sequences_cells import CELLS, COLUMNS, PROCESS, Measure
from benchmarks.evaluation import as_sequences
from benchmarks.support.benchmark import PEERS as PYTHON
from benchmarks.support.benchmark import SEQUENCES, Benchmark
from benchmarks.support.common import ROOT

BENCHMARK = Benchmark(
    __file__,
    ("process_field",),
    SEQUENCES,
    minutes=25,
    seeds="number of the run",
    commands=("--peers",),
    peers=("pm4py", "mbi", "jax"),
)
COLLECTIONS, EPSILONS = (PROCESS, "msnbc, 7,000"), (0.25, 1.0)
PEERS = {"laplace": "pm4py, Laplace", "sacofa": "pm4py, SaCoFa", "aim": "AIM with mbi 2"}
SHOWN = ("held to 2", "held to 4", "held to 8", "uniform to 2", "uniform to 4", "top 20", "top 100", "length distance")


def main() -> None:
    """Measure, print and write the results."""
    cells, rows = BENCHMARK.cells(), [["collection", "epsilon", "model", *SHOWN, "sequences"]]
    for name in COLLECTIONS:
        whole = Measure(name)
        for epsilon, model in product(EPSILONS, ("default", *PEERS)):
            of = whole.of if model == "default" else partial(peer, whole)
            measure = partial(of, model, epsilon, 1)
            found = dict(zip(COLUMNS, cells.get([name, epsilon, model, 1], measure), strict=True))
            shown = [f"{found[each]:.0f}" if each.startswith("top") else f"{found[each]:.3f}" for each in SHOWN]
            rows.append([name, str(epsilon), PEERS.get(model, "Sequences"), *shown, f"{found['sequences']:,.0f}"])
    note = "One run each. Of count queries |Q - Q'| / max(Q, 0.1 %), for 10,000 queries; of top k, how many are found. "
    note += "pm4py draws noise of scale 1 / epsilon at each of 10 levels, so it gets a tenth of epsilon, and prunes "
    note += "below 4 noise scales. AIM is weaker here than it can be: it has only the first 8 places as columns, 16 "
    note += (
        "rounds instead of 16 for each column, models of at most 1 MB instead of 80, and only pairs of columns. mbi "
    )
    note += "has no mechanism, so the choice of marginals is written for this comparison after the paper. Its delta is "
    note += "1e-6. Both take the activities from the data. Sequences has neither a delta nor a choice."
    BENCHMARK.table("Event logs of the field", rows, "process_field", note)


def peer(whole: Measure, model: str, epsilon: float, seed: int) -> list[float]:
    """Return the figures of one release of a package."""
    with TemporaryDirectory() as folder:
        log, out = Path(folder) / "log.parquet", Path(folder) / "out.parquet"
        sequences_of(whole).write_parquet(log)
        program = [str(PYTHON), str(ROOT / "benchmarks" / "peers" / "process_models.py")]
        subprocess.run([*program, str(log), str(out), model, str(epsilon), str(seed)], check=True, capture_output=True)
        return figures(whole, pl.read_parquet(out))


def sequences_of(whole: Measure) -> pl.DataFrame:
    """Return the true sequences as a table."""
    symbols = [whole.alphabet[symbol] for symbol in whole.truth.symbols.tolist()]
    return pl.DataFrame({"sequence": [symbols[start:end] for start, end in pairwise(whole.truth.starts.tolist())]})


def figures(whole: Measure, released: pl.DataFrame) -> list[float]:
    """Return the figures of released sequences with their weights."""
    number = {symbol: place for place, symbol in enumerate(whole.alphabet)}
    repeats = released["weight"].round().cast(pl.Int64)
    drawn = released.select(pl.col("sequence").repeat_by(repeats).explode())["sequence"].drop_nulls()
    if not len(drawn):
        return [*[1.0] * len(CELLS), *[0.0] * 5, 1.0, 0.0]
    sizes = drawn.list.len().to_numpy().astype(np.int64)
    symbols = drawn.explode().replace_strict(number, return_dtype=pl.Int32).to_numpy()
    data = as_sequences(symbols, sizes, len(whole.alphabet))
    return [*whole.errors(data, 1.0), *whole.others(data), float(sizes.size)]


if __name__ == "__main__":
    main()
