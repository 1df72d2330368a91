"""The order in which users weigh: a user more moves none of the others, however close their hashes are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from voxpop.corpus.weighing_order import weighing_order as user_order


class FewBits:
    """Draws whose hashes agree in all but a few bits, which real ones do once in many millions of users."""

    def __init__(self, hashes):
        self.hashes = hashes

    def draws(self, purpose, first, second):
        chosen = np.array(self.hashes, np.uint64)[first.astype(np.int64)]
        return np.stack([chosen, chosen], axis=1)


HASHES = st.tuples(st.integers(0, 6), st.sampled_from([2, 4, 8, 16, 32])).flatmap(
    lambda shape: st.lists(st.integers(0, 3).map(lambda low: low << shape[0]), min_size=shape[1], max_size=shape[1])
)


@given(HASHES, st.data())
def test_a_user_more_does_not_move_the_others(hashes, data):
    """Whoever comes or goes, and whether or not the number of users passes a power of two."""
    extra = data.draw(st.integers(0, len(hashes) - 1))
    keys = np.arange(len(hashes), dtype=np.uint64)
    every = user_order(keys, FewBits(hashes), "test")
    fewer = np.delete(keys, extra)
    left = fewer[user_order(fewer, FewBits(hashes), "test")]
    assert [user for user in every if user != extra] == left.tolist()


def test_a_power_of_two_moves_nobody():
    """The twin that gave the place as many bits as the number of users has swapped two of eight users."""
    hashes = [8, 0, 64, 128, 192, 256, 320, 384]
    keys = np.arange(8, dtype=np.uint64)
    every = user_order(keys, FewBits(hashes), "test").tolist()
    fewer = user_order(keys[:7], FewBits(hashes), "test").tolist()
    assert [user for user in every if user < 7] == fewer
    assert sorted(every) == list(range(8))
