"""F on a grid of c: falling convex functions, kept and read so that every error is upwards."""

from dataclasses import dataclass

import numpy as np

from voxpop.arrays import Bools, Floats, Int64s

# The grid spans c from e^-left to e^right. Further left F is as good as straight, further right it is small.
_LEFT, _RIGHT = 2.0, 1.5  # times epsilon
_STEPS = 4.0  # and so many times what one round can shift c to the right
_FURTHEST = 16.0
_SAFETY = 1e-12  # shifts are rounded to the left, where F is larger, by far more than the error of a logarithm


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Nodes in c, evenly spaced in ln c, with one at c = 1, where F starts with a bend.

    Args:
        points: c at every node, rising.
        spacing: between logarithms.
    """

    points: Floats
    spacing: float

    @staticmethod
    def around(epsilon: float, rate: float, nodes: int) -> "Grid":
        """A grid of about so many nodes.

        Args:
            epsilon: More than 0.
            rate: The probability that a user is sampled.
            nodes: How many.

        Returns:
            The grid.
        """
        more = -_STEPS * np.log1p(-rate)
        wide, high = min(_LEFT * epsilon + more, _FURTHEST), _RIGHT * epsilon + more
        spacing = (wide + high) / nodes
        if epsilon > 2 * spacing:
            spacing = epsilon / round(epsilon / spacing)  # puts a node at e^epsilon
        left, right = int(wide / spacing), int(high / spacing) + 1
        return Grid(np.exp(spacing * np.arange(-left, right + 1)), spacing)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """F at every node.

    Args:
        values: Falling and convex in c.
    """

    values: Floats

    @staticmethod
    def start(grid: Grid) -> "Table":
        """F after the last round: max(0, 1 - c).

        Args:
            grid: The nodes.

        Returns:
            The table.
        """
        return Table(np.maximum(0.0, 1 - grid.points))

    def raised(self, candidates: Floats) -> "Table":
        """F one round earlier: the largest candidate.

        Args:
            candidates: One row per node, one column per corner.

        Returns:
            The table, nowhere lower than this one.
        """
        return Table(np.maximum(self.values, candidates.max(axis=1)))

    def value_at(self, factor: float, grid: Grid) -> float:
        """F between nodes, from above.

        Args:
            factor: c, on the grid.
            grid: The nodes.

        Returns:
            The value.
        """
        # F is convex in c, so a straight line between nodes lies above it.
        return float(np.interp(factor, grid.points, self.values))


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """Where c goes from every node (a row) at every corner (a column): c times the ratio of two chances.

    Args:
        places: The node to the left.
        weight: Of the next node, linear in c; 0 beyond the last node, where F is read off at the last.
        outside: Where c falls left of the first node: there F lies below the straight line to F(0) = 1.
        share: How far c is along that line, at `outside`.
    """

    places: Int64s
    weight: Floats
    outside: Bools
    share: Floats

    @staticmethod
    def of(first: Floats, other: Floats, grid: Grid) -> "Shift":
        """The shift from c to c times other / first.

        Args:
            first: A chance under the law that is held against the other, by corner; where it is 0 any shift will do.
            other: The chance under the other law.
            grid: The nodes.

        Returns:
            The shift.
        """
        possible = first > 0
        ratio = np.where(possible, other, 1.0) / np.where(possible, first, 1.0) * (1 - _SAFETY)
        with np.errstate(divide="ignore"):
            # How many nodes c moves: they are even in ln c. Between two of them the weight is linear in c itself.
            exact = np.clip(np.log(ratio) / grid.spacing, -(2.0**40), 2.0**40)
        whole = np.floor(exact)
        fraction = np.expm1((exact - whole) * grid.spacing) / np.expm1(grid.spacing)
        last = len(grid.points) - 1
        rows = np.arange(last + 1)[:, None] + whole.astype(np.int64)
        outside = rows < 0
        weight = np.where((rows >= last) | outside, 0.0, fraction)
        # c r / c_0: left of the first node F lies below the line from F(0) = 1 to F(c_0).
        share = (grid.points[:, None] / grid.points[0] * ratio)[outside]
        return Shift(np.clip(rows, 0, last), weight, outside, share)

    def read(self, table: Table) -> Floats:
        """F where every node goes at every corner, from above.

        Args:
            table: F by node.

        Returns:
            One row per node, one column per corner.
        """
        rises = np.append(np.diff(table.values), 0.0)
        result: Floats = table.values[self.places] + self.weight * rises[self.places]
        result[self.outside] = 1 - self.share * (1 - table.values[0])
        return result
