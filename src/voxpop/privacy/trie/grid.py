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
    """F at every node (a row), by how many holders the last prefix had at most (a column).

    Args:
        values: Falling and convex in c; rising from column to column.
    """

    values: Floats

    @staticmethod
    def start(grid: Grid, columns: int) -> "Table":
        """F after the last round: max(0, 1 - c).

        Args:
            grid: The nodes.
            columns: How many columns.

        Returns:
            The table.
        """
        return Table(np.repeat(np.maximum(0.0, 1 - grid.points)[:, None], columns, axis=1))

    def raised(self, candidates: Floats, group: Int64s) -> "Table":
        """F one round earlier: the largest candidate of a column's group and of those before it.

        Args:
            candidates: One column per corner.
            group: Of each corner, never falling.

        Returns:
            The table, nowhere lower than this one.
        """
        # k never rises: a column takes the best corner of its own stretch and of all before it.
        first = np.flatnonzero(np.diff(group, prepend=-1))
        best = np.maximum.accumulate(np.maximum.reduceat(candidates, first, axis=1), axis=1)
        return Table(np.maximum(self.values, best))

    def value_at(self, factor: float, grid: Grid) -> float:
        """F whatever the holders, from above.

        Args:
            factor: c, on the grid.
            grid: The nodes.

        Returns:
            The value in the last column.
        """
        # F is convex in c, so a straight line between nodes lies above it.
        return float(np.interp(factor, grid.points, self.values[:, -1]))


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """Where c goes from every node (a row) at every corner (a column): c times the ratio of two chances.

    Args:
        places: The node to the left, as an index into the flat table.
        step: From a node to the next one in the flat table.
        weight: Of the next node, linear in c; 0 beyond the last node, where F is read off at the last.
        group: The column of the table by corner.
        outside: Where c falls left of the first node: there F lies below the straight line to F(0) = 1.
        share: How far c is along that line, at `outside`.
    """

    places: Int64s
    step: int
    weight: Floats
    outside: Bools
    share: Floats
    line: Int64s

    @staticmethod
    def of(first: Floats, other: Floats, group: Int64s, grid: Grid) -> "Shift":
        """The shift from c to c times other / first.

        Args:
            first: A chance under the law that is held against the other, by corner; where it is 0 any shift will do.
            other: The chance under the other law.
            group: The column of the table to read.
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
        columns = int(group.max()) + 1
        places = np.clip(rows, 0, last - 1) * columns + group
        places += np.where(rows >= last, columns, 0)
        # c r / c_0: left of the first node F lies below the line from F(0) = 1 to F(c_0).
        share = (grid.points[:, None] / grid.points[0] * ratio)[outside]
        return Shift(places, columns, weight, outside, share, np.broadcast_to(group, outside.shape)[outside])

    def read(self, table: Table) -> Floats:
        """F where every node goes at every corner, from above.

        Args:
            table: F by node and column.

        Returns:
            One row per node, one column per corner.
        """
        flat = table.values.ravel()
        rises = np.append(flat[self.step :] - flat[: -self.step], np.zeros(self.step))
        result: Floats = flat[self.places] + self.weight * rises[self.places]
        result[self.outside] = 1 - self.share * (1 - table.values[0, self.line])
        return result
