"""Run the audit of a mechanism: every worst case, on the real release path."""

from collections.abc import Callable, Iterator
from typing import Final

from voxpop import mechanisms
from voxpop.errors import InputError
from voxpop.mechanisms import load
from voxpop.testing.audit.case import Case, Finding, examine
from voxpop.testing.audit.lower_bounds import ERROR
from voxpop.testing.audit.memory_cases import memory_cases

MECHANISMS: Final[dict[str, Callable[[], Iterator[Case]]]] = {
    **{each.command: load(each.audit) for each in mechanisms.MECHANISMS if each.audit is not None},
    "memory": memory_cases,
}
TRIALS = 100_000


def audit(mechanism: str, trials: int = TRIALS, error: float = ERROR) -> Iterator[Finding]:
    """Audit a mechanism: yield what each of its worst cases shows.

    The claim audited is a weak one, epsilon 1 and delta 0.02, because what happens once in 10^7 releases cannot be seen
    in 10^5. The code and the formulas that run are the same at any budget.

    Args:
        mechanism: "items", "ngrams", "hitters", "sequences" or "top", as the commands are called, or "memory": set
            union and n-grams within a memory limit.
        trials: of each side of each case.
        error: chance that a bound of a case is wrong, and chance that right probabilities seem to stray.

    Returns:
        One finding for each case, as soon as it is there.

    Raises:
        InputError: for a mechanism that is none of ours, or numbers out of range.
    """
    if mechanism not in MECHANISMS:
        names = ", ".join(f'"{name}"' for name in MECHANISMS)
        raise InputError(f"`mechanism` must be one of {names}, got {mechanism!r}.")
    if trials < 1:
        raise InputError(f"`trials` must be at least 1, got {trials}: how often each side of a case is tried.")
    if not 0 < error < 0.5:
        raise InputError(f"`error` must lie above 0 and below 0.5, got {error}: the chance of a false alarm.")
    return (examine(case, trials, error) for case in MECHANISMS[mechanism]())
