"""Local PipelineDP with private selection of items, and at most `limit` items per user.

    python pipelinedp_selection.py PAIRS.parquet gaussian|weighted
Version 0.3.1 takes milliseconds for each item with "weighted", and adds sqrt(limit) times the necessary noise (see
`benchmarks.baselines.gaussian`). Therefore `benchmarks.speed.pairs` runs "gaussian".
"""

import math
import sys
import time

import pipeline_dp as pdp
import polars as pl

LIMIT, EPSILON, DELTA = 100, 3.0, math.exp(-10)
STRATEGIES = {
    "gaussian": pdp.PartitionSelectionStrategy.GAUSSIAN_THRESHOLDING,
    "weighted": pdp.PartitionSelectionStrategy.WEIGHTED_GAUSSIAN_THRESHOLDING,
}


def main(path: str, strategy: str) -> None:
    """Select the items, and print their number and the seconds."""
    start = time.perf_counter()
    rows = list(pl.read_parquet(path, columns=["user", "item"]).iter_rows())
    accountant = pdp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    engine = pdp.DPEngine(accountant, pdp.LocalBackend())
    extractors = pdp.DataExtractors(privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1])
    parameters = pdp.SelectPartitionsParams(
        max_partitions_contributed=LIMIT,
        partition_selection_strategy=STRATEGIES[strategy],
    )
    selected = engine.select_partitions(rows, parameters, extractors)
    accountant.compute_budgets()
    print(f"{len(list(selected))} {time.perf_counter() - start:.2f}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
