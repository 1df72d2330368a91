"""Releases of the rows of a table, for tests of exports."""

import pyarrow as pa

import voxpop as vp
from voxpop.reading.keys import KeyColumn, Keys, plain_type
from voxpop.release.result import StoredPlan


def keys_of(table):
    """Return a release that contains all rows of a table as keys."""
    keys = Keys(tuple(KeyColumn(each.name, str(plain_type(each.type))) for each in table.schema))
    items = keys.spell([column.combine_chunks() for column in table.columns]).to_pylist()
    return vp.Release.from_items(
        pa.array(sorted(set(items), key=str.encode)), StoredPlan({}), vp.Guarantee(4, 1e-7), "items", keys
    )
