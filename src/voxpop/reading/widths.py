"""The range of 32-bit numbers: users, words and grams are numbered by them."""

from voxpop.errors import InputError

MOST_NUMBERS = 1 << 31
"""From here on numbers of 32 bits with a sign would begin again, and two things would pass for one."""


def check_width(count: int, what: str) -> None:
    """Refuse more objects than can be numbered.

    Args:
        count: number of distinct objects.
        what: their name, in the plural.

    Raises:
        InputError: where there are more than 2^31.
    """
    if count > MOST_NUMBERS:
        raise InputError(
            f"more than 2^31 {what} cannot be told apart by numbers of 32 bits. Read the table on Spark, where each "
            "partition has numbers of its own, into more partitions (partitions= of voxpop.read)."
        )
