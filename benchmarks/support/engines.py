"""Private data as an engine, for exact counts and for measurements of single steps."""

from typing import Any

import voxpop as vp
from voxpop.engine.contract import check_engine


def read_engine(source: Any, **arguments: Any) -> Any:
    """Return the engine of the data that `voxpop.read` returns."""
    return check_engine(vp.read(source, **arguments))


def load_engine(folder: Any, **arguments: Any) -> Any:
    """Return the engine of saved data."""
    return check_engine(vp.load_corpus(folder, **arguments))
