"""What readers say when they fail may quote rows, and is taken out."""

from collections.abc import Iterator
from contextlib import contextmanager

from voxpop.errors import SourceError, VoxpopError


def quieten(error: BaseException | None) -> None:
    """Take out of an exception, and of those it came from, what it may quote: whoever logs ours may find them."""
    while error is not None:
        if isinstance(error, UnicodeDecodeError):
            error.object = b""
        if isinstance(error, UnicodeEncodeError):
            error.object = ""
        if not isinstance(error, VoxpopError) and (not isinstance(error, OSError) or error.errno is None):
            error.args = ("what the reader said may quote rows, and is left out",)
        error = error.__cause__ or error.__context__


@contextmanager
def without_quotes(what: str, advice: str) -> Iterator[None]:
    """Say what polars could not read, and not in its own words.

    Args:
        what: is read.
        advice: what to try first.

    Raises:
        SourceError: where polars fails.
    """
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        kind = type(error).__name__
        quieten(error)
        raise SourceError(
            f"{what} cannot be read: polars failed with {kind}, and what it said may quote rows. {advice}"
        ) from None
