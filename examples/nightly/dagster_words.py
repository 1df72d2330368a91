"""A nightly release by Dagster: the partition of the asset is the run, so a retry is not charged again."""

import dagster as dg
from job import release_words

days = dg.DailyPartitionsDefinition(start_date="2026-11-01")


@dg.asset(partitions_def=days, retry_policy=dg.RetryPolicy(max_retries=2))
def words(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
    """The released words of one day."""
    return dg.MaterializeResult(metadata={"folder": release_words(context.partition_key)})


nightly = dg.build_schedule_from_partitioned_job(dg.define_asset_job("nightly", [words]))
definitions = dg.Definitions(assets=[words], schedules=[nightly])
