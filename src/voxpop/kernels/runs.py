"""How many candidates in a row users hold."""

import numpy as np

from voxpop.arrays import Bytes, Int32s, Int64s
from voxpop.kernels._jit import jit


@jit
def candidate_runs(ids: Int32s, user_start: Int64s, wanted: Bytes, whole: bool) -> Int64s:
    """Return by user the most positions in a row at which it holds a candidate.

    Args:
        ids: int32 by position; below 0 where there is none.
        user_start: int64 (users + 1).
        wanted: uint8 by id, nonzero for candidates; empty means every id.
        whole: False where it is enough to know whether there is any: then 1 stands for that.
    """
    found = np.zeros(user_start.size - 1, np.int64)
    for user in range(user_start.size - 1):
        run = 0
        for place in range(user_start[user], user_start[user + 1]):
            held = ids[place] >= 0 and (wanted.size == 0 or wanted[ids[place]] > 0)
            run = run + 1 if held else 0
            if run > found[user]:
                found[user] = run
                if not whole:
                    break
    return found
