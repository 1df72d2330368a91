"""Fixtures with a small collection of known phrases."""

import pytest

import voxpop as vp
from support.corpora import corpus_of

PHRASES = ["thank you very much", "see you soon", "good morning everyone", "how are you", "very much so"]
RARE = "nobody else wrote this {}"


@pytest.fixture(scope="session")
def letters() -> vp.Corpus:
    """Return 3,000 users who each wrote two of five phrases, and one sentence that no other user wrote."""
    users = []
    for number in range(3000):
        texts = [PHRASES[number % 5], PHRASES[(number // 5) % 5], RARE.format(f"number{number}")]
        users.append([text.split() for text in texts])
    return corpus_of(users)


@pytest.fixture(scope="session")
def budget() -> vp.Budget:
    """Return the budget that DPNE uses for text."""
    return vp.Budget(epsilon=4, delta=1e-7)
