"""Fixtures and the one hypothesis profile of the suite."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("voxpop", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("voxpop")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real data, or skip."""
    folder = Path(os.environ.get("VOXPOP_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no real data: set VOXPOP_DATA to the folder that holds reddit_posts.parquet")
    return folder
