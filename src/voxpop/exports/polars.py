"""A namespace for polars tables, for example for `frame.voxpop.read(user=..., text=...)`.

Importing this module registers the namespace.
"""

from typing import Any, final

import polars as pl

import voxpop as vp
from voxpop.engine.data import Corpus
from voxpop.exports.sql import Columns
from voxpop.release.release import Release


@pl.api.register_lazyframe_namespace("voxpop")
@pl.api.register_dataframe_namespace("voxpop")
@final
class Voxpop:
    """The voxpop functions that accept a table, as methods of a polars DataFrame or LazyFrame.

    Example:
        >>> import polars as pl
        >>> import voxpop.exports.polars
        >>> sales = pl.DataFrame({"who": range(3000), "shop": [7] * 3000})
        >>> data = sales.voxpop.read(user="who", items="shop")
        >>> shops = vp.Items(max_items_per_user=1).release(data, vp.Budget(1, 1e-8))
        >>> sales.voxpop.filter(shops).height
        3000
    """

    def __init__(self, table: Any) -> None:
        self._table = table

    def read(self, **arguments: Any) -> Corpus:
        """Return the table as private data, as `voxpop.read` does."""
        return vp.read(self._table, **arguments)

    def filter(self, release: Release, columns: Columns = None) -> Any:
        """Keep the rows with a released key, as `voxpop.exports.filter` does."""
        return vp.exports.filter(release, self._table, columns)

    def with_other(self, release: Release, columns: Columns = None, other: Any = "other") -> Any:
        """Replace all keys that were not released with one common key, as `voxpop.exports.with_other` does."""
        return vp.exports.with_other(release, self._table, columns, other)
