"""Kernels over drawn sessions."""

import numpy as np

from voxpop.arrays import Int32s, Int64s
from voxpop.kernels._jit import jit


@jit
def count_reaching(symbols: Int32s, starts: Int64s, steps: Int32s, within: int) -> Int64s:
    """Count the sessions that get as far as each step of a funnel.

    Args:
        symbols: int32, one session behind the other.
        starts: int64 (sessions + 1).
        steps: int32, symbols in the order wanted.
        within: most symbols from one step to the next.

    Returns:
        int64 by step: sessions in which there are places, one for each step up to this one, in order and each at most
        `within` behind the one before.
    """
    counts = np.zeros(steps.size, np.int64)
    # int64 by step: the latest place at which a match up to it ends, -1 for none.
    last = np.empty(steps.size, np.int64)
    for session in range(starts.size - 1):
        last[:] = -1
        reached = 0
        for position in range(starts[session], starts[session + 1]):
            # From the last step on, so that one place does not stand for two steps; the latest place is the best one.
            for step in range(min(reached, steps.size - 1), -1, -1):
                if symbols[position] != steps[step]:
                    continue
                if step == 0 or (last[step - 1] >= 0 and position - last[step - 1] <= within):
                    last[step] = position
                    reached = max(reached, step + 1)
        # Whoever gets to a step has got to all before it.
        for step in range(reached):
            counts[step] += 1
    return counts
