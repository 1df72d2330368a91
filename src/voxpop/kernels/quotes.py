"""The kernel that follows the quotes of a CSV file, so that one that is never closed swallows nothing."""

from typing import Any

import numpy as np

from voxpop.arrays import Bytes, Int64s
from voxpop.kernels._jit import jit

QUOTE, NEWLINE, RETURN = np.uint8(34), np.uint8(10), np.uint8(13)
START, PLAIN, QUOTED, CLOSED, RETURNED = 0, 1, 2, 3, 4
"""At the start of a field; in one without quotes; in one with; behind its second quote; behind a carriage return."""
MODE, ROW, OPENED = 0, 1, 2


@jit
def follow_quotes(data: Bytes, delimiter: Any, state: Int64s) -> Any:
    """Go on through a file, and say whether every quoted field ends where it closes.

    Args:
        data: the next bytes.
        delimiter: the byte between fields.
        state: int64 (3): where between quotes we are, the row, and the row in which the last quoted field began; all 0
            at the start of a file, and changed in place.

    Returns:
        Whether all is well so far; if not, the field that began in row `state[OPENED]` goes on behind its last quote.
    """
    mode, row = state[MODE], state[ROW]
    for place in range(data.size):
        byte = data[place]
        if mode == QUOTED:
            # Perhaps the end of the field; a second quote right behind it is one that is meant.
            if byte == QUOTE:
                mode = CLOSED
            continue
        if mode == RETURNED:
            mode = START
            if byte == NEWLINE:
                continue
        if byte == QUOTE and mode == START:
            mode = QUOTED
            state[OPENED] = row
        elif byte == QUOTE and mode == CLOSED:
            mode = QUOTED
        elif byte == delimiter:
            mode = START
        elif byte == NEWLINE:
            mode = START
            row += 1
        elif byte == RETURN:
            mode = RETURNED
            row += 1
        # Behind a closing quote comes a delimiter, the end of a row, or another quote; nothing else.
        elif mode == CLOSED:
            return False
        else:
            mode = PLAIN
    state[MODE], state[ROW] = mode, row
    return True
