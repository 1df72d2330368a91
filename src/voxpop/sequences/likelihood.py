"""How likely a draw is one whole sequence."""

from collections.abc import Callable

from voxpop.arrays import Floats


def likelihood(sequence: list[int], most: int, chances: Callable[[list[int]], Floats]) -> float:
    """Return the product of the chances of each symbol behind those before it, and of the end behind them all.

    Args:
        sequence: numbers of symbols; -1 for one that the alphabet does not have.
        most: most symbols of a sequence.
        chances: float64 by symbol, the end last, of what follows a beginning.
    """
    if not sequence or -1 in sequence or len(sequence) > most:
        return 0.0
    result = 1.0
    # -1 is the last column: the end.
    for place, symbol in enumerate([*sequence, -1]):
        result *= float(chances(sequence[:place])[symbol])
    return result
