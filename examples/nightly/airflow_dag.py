"""A nightly release by Airflow 3: a retry of the task uses the run that was charged."""

from datetime import UTC, datetime, timedelta

from airflow.sdk import dag, task
from airflow.timetables.interval import CronDataIntervalTimetable

# Each run is for the day that has ended. With schedule="@daily", Airflow 3 passes the day that begins.
DAYS = CronDataIntervalTimetable("0 0 * * *", timezone="UTC")


@dag(schedule=DAYS, start_date=datetime(2026, 11, 1, tzinfo=UTC), catchup=False)
def nightly_words() -> None:
    """Release the words of each day."""

    @task(retries=2, retry_delay=timedelta(minutes=10))
    def release(ds: str | None = None) -> str:
        from job import release_words

        return release_words(str(ds))  # the day, which Airflow passes

    release()


nightly = nightly_words()
