"""All audit cases of Voxpop, grouped by mechanism."""

from collections.abc import Callable, Iterator

from audits.adaptive_cases import adaptive_cases
from audits.hitters_cases import hitters_cases
from audits.limit_cases import limit_cases
from audits.memory_cases import memory_cases
from audits.ngrams_cases import ngrams_cases
from audits.promise_cases import promise_cases
from audits.sequences_cases import sequences_cases
from audits.several_cases import several_cases
from audits.top_cases import top_cases
from audits.union_cases import union_cases
from audits.walk_cases import walk_cases
from voxpop.testing.auditing import Case
from voxpop.testing.cases import keys, ngrams, profile


def all_union_cases() -> Iterator[Case]:
    """Yield the cases of set union, with the default mechanism first."""
    yield from adaptive_cases()
    yield from union_cases()
    yield from promise_cases()
    yield from several_cases()
    yield from limit_cases()


def all_ngrams_cases() -> Iterator[Case]:
    """Yield the cases of n-grams for the published method, the default method, and every pass of the default method."""
    yield from ngrams_cases()
    yield ngrams()
    yield from walk_cases()


def profile_cases() -> Iterator[Case]:
    """Yield the case of the rounds over single values.

    The tests in tests/profile audit the rounds over joint values.
    """
    yield profile()


def keys_cases() -> Iterator[Case]:
    """Yield the case of keys with counts."""
    yield keys()


CASES: dict[str, Callable[[], Iterator[Case]]] = {
    "items": all_union_cases,
    "ngrams": all_ngrams_cases,
    "heavy-hitters": hitters_cases,
    "sequences": sequences_cases,
    "top": top_cases,
    "profile": profile_cases,
    "keys": keys_cases,
    "memory": memory_cases,
}
"""The cases of each mechanism. "memory" runs set union and n-grams within a memory limit."""
