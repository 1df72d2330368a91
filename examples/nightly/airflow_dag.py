"""A nightly release by Airflow 3: a retry of the task uses the run that was charged."""

from datetime import datetime, timedelta

from airflow.sdk import dag, task


@dag(schedule="@daily", start_date=datetime(2026, 11, 1), catchup=False)
def nightly_words() -> None:
    """Release the words of each day."""

    @task(retries=2, retry_delay=timedelta(minutes=10))
    def release(ds: str | None = None) -> str:
        from job import release_words

        return release_words(str(ds))  # the day, which Airflow passes

    release()


nightly = nightly_words()
