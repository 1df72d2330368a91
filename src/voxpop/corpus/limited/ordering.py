"""Users laid out on disk in the order in which they weigh, so that every pass reads the file from front to back."""

from collections.abc import Iterator

import numpy as np

from voxpop.arrays import Int32s, Int64s
from voxpop.corpus.draws import Draws
from voxpop.corpus.limited.memory import MemoryLimit
from voxpop.corpus.limited.pages import forget_pages, release_unused
from voxpop.corpus.limited.sorter import HEAD, SHARE_OF_SORTER, Sorter
from voxpop.corpus.limited.user_files import Mapped, in_key_order
from voxpop.corpus.weighing_order import Keys, order_hashes


def in_weighing_order(
    tokens: Int32s,
    user_start: Int64s,
    user_key: Keys,
    limit: MemoryLimit,
    secret: Draws,
    pass_name: str,
) -> Mapped:
    """Return the same users in the order that `weighing_order` gives, mapped."""
    # Bytes; a sixteenth of it at a time goes in.
    most = limit.room // SHARE_OF_SORTER
    sorter = Sorter(limit, most, tokens.nbytes + HEAD.itemsize * user_key.size)
    for first, last, begin, end in user_blocks(user_start, most // 16):
        heads = np.zeros(last - first, HEAD)
        heads["user"] = heads["other"] = user_key[first:last]
        # The order of set union: by 64 bits of a keyed hash, then by user key, wherever users lie
        # (docs/privacy/set-union.md).
        heads["key"] = order_hashes(heads["user"], secret, pass_name)
        heads["row"] = np.arange(first, last)
        heads["size"] = np.diff(user_start[first : last + 1]) if last - first > 1 else end - begin
        sorter.add(heads, np.asarray(tokens[begin:end]))
        forget_pages(tokens, begin, end)
        forget_pages(user_start, first, last)
        forget_pages(user_key, first, last)
    mapped = in_key_order(sorter, limit)
    release_unused()
    return mapped


def user_blocks(user_start: Int64s, most: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (first user, end, first position, end): whole users up to `most` of positions and of users together.

    A user who holds more comes in several blocks of its own.
    """
    users = user_start.size - 1
    first = 0
    while first < users:
        begin = int(user_start[first])
        # The last user who ends within `most` positions.
        last = int(np.searchsorted(user_start, begin + most, side="right")) - 1
        last = min(last, first + most, users)
        if last > first:
            yield first, last, begin, int(user_start[last])
            first = last
        else:
            end = int(user_start[first + 1])
            for place in range(begin, end, most):
                yield first, first + 1, place, min(place + most, end)
            first += 1
