"""Every case of set union: as it runs by default, the classic mechanisms, what they promise, several data sets."""

from collections.abc import Iterator

from voxpop.testing.audit.adaptive_cases import adaptive_cases
from voxpop.testing.audit.case import Case
from voxpop.testing.audit.promise_cases import promise_cases
from voxpop.testing.audit.several_cases import several_cases
from voxpop.testing.audit.union_cases import union_cases


def all_union_cases() -> Iterator[Case]:
    """Yield the cases, those of the default first."""
    yield from adaptive_cases()
    yield from union_cases()
    yield from promise_cases()
    yield from several_cases()
