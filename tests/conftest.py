"""Fixtures and the one hypothesis profile of the suite."""

import hashlib
import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run side by side: more threads wait for each other

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from voxpop.kernels import threads
from voxpop.privacy.secret import Secret

if numba.config.DISABLE_JIT:
    # 64-bit hashes wrap on purpose. Where kernels run as Python each product would warn and look for the filter that
    # ignores it, which takes three times as long as the rest. What numpy does is set by thread.
    np.seterr(over="ignore")
    threads.ThreadPoolExecutor = partial(ThreadPoolExecutor, initializer=partial(np.seterr, over="ignore"))

EXAMPLES = int(os.environ.get("VOXPOP_EXAMPLES", "100"))
settings.register_profile("voxpop", max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("voxpop")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real data, or skip."""
    folder = Path(os.environ.get("VOXPOP_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no real data: set VOXPOP_DATA to the folder that holds reddit_posts.parquet")
    return folder


@pytest.fixture
def fixed_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make secrets the same in every run, and another each time that a test asks for one.

    For tests that name what a release without a seed contains: weights end three deviations above a threshold, so any
    one frequent item is missing from one release in 700. All other tests draw fresh secrets.
    """
    numbers = itertools.count()

    def numbered(cls: type[Secret]) -> Secret:
        return cls(hashlib.sha256(str(next(numbers)).encode()).digest(), private=True)

    monkeypatch.setattr(Secret, "fresh", classmethod(numbered))


@pytest.fixture(autouse=True)
def few_sessions_without_the_jit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions to a model draw a million sessions: too many for kernels that are not compiled."""
    if numba.config.DISABLE_JIT:
        monkeypatch.setattr("voxpop.mechanisms.sequences.queries.MODELS", 4)
        monkeypatch.setattr("voxpop.mechanisms.sequences.queries.SESSIONS", 2000)
        monkeypatch.setattr("voxpop.mechanisms.sequences.queries.SESSIONS_EACH", 100)
        monkeypatch.setattr("voxpop.mechanisms.sequences.profile.FITTED", 1000)


@pytest.fixture(autouse=True)
def few_prices_without_the_jit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bands of candidates choose their cutpoints at a thousand prices, again for every candidate."""
    if numba.config.DISABLE_JIT:
        monkeypatch.setattr("voxpop.mechanisms.ngrams.votes.PRICES", np.geomspace(0.01, 10_000, 25))
