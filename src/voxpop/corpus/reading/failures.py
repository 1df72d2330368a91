"""What readers say when they fail may quote rows, and is taken out."""

from voxpop.errors import VoxpopError


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
