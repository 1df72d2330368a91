"""Fixtures with releases for tests that save and load them."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from voxpop.privacy.guarantee import Guarantee
from voxpop.release.release import Release
from voxpop.release.result import StoredPlan

NUMBERS = {
    "mechanism": "items",
    "max_items_per_user": 100,
    "sigma": 1.2978642885004137,
    "cutoff": None,
    "users_needed": [{"items": 1, "probability": 0.5, "users": 8}],
}


@pytest.fixture
def release_of() -> Callable[..., Release]:
    """Return a function that makes a release of the given items."""

    def make(*items: str, private: bool = True) -> Release:
        return Release.from_items(
            pa.array(items, pa.large_string()), StoredPlan(NUMBERS), Guarantee(4, 1e-7, private=private)
        )

    return make


@pytest.fixture
def words(release_of: Callable[..., Release]) -> Release:
    """Return a small release of words. The byte order of these words is not alphabetical."""
    return release_of("Zoo", "milk", "tea", "été", "𝔘nicode")


@pytest.fixture(autouse=True, scope="module")
def _few_sessions(few_sessions: None) -> None:
    """Draw few sessions, because these tests save, show and compare results and do not check the accuracy of models."""
