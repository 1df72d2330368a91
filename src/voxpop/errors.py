"""The exceptions that voxpop raises.

```
VoxpopError
├── InputError (also ValueError)      the call or the data cannot be used as given
│   ├── BudgetError                   epsilon, delta or another parameter of the guarantee is out of range
│   │   └── ExhaustedError            a ledger has too little budget left
│   ├── SourceError                   a file, folder or table cannot be read
│   │   └── ColumnError               a column is missing or has the wrong type
│   ├── MemoryLimitError              the work needs more memory than the limit allows
│   ├── ReleaseError                  a folder cannot be saved to, or is not a release
│   └── LedgerError                   a ledger cannot be read, written or trusted
└── InternalError (also RuntimeError) a bug in voxpop
```

Messages contain the problem, the requirement and the next step. Messages show parameters, column names, file names and
row numbers, which are rounded unless `exact=True` is passed. Messages never show an item, a count of users or a user's
name.
"""

import re
from importlib import import_module
from typing import Any


def shown(text: str) -> str:
    r"""Return a text with all terminal control characters escaped, except line feeds.

    Names of files, labels and released text may contain control characters and characters that change the direction of
    text. Therefore all output of the command line, exceptions and `print` passes through this function.

    Example:
        >>> print(shown("tea\x1b[2J"))
        tea\x1b[2J
    """
    return text if text.isprintable() else "\n".join("".join(map(_escaped, line)) for line in text.split("\n"))


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


def on_one_line(text: str) -> str:
    """Return a text like `shown`, but also escape line feeds, for a label or a name within other text."""
    return shown(text).replace("\n", "\\n")


class VoxpopError(Exception):
    """The base class of all exceptions that voxpop raises deliberately."""

    def __str__(self) -> str:
        """Return the message with terminal control characters escaped."""
        return shown(super().__str__())


class InputError(VoxpopError, ValueError):
    """The call or the data cannot be used as given."""


class BudgetError(InputError):
    """A parameter of the guarantee is out of range."""


class ExhaustedError(BudgetError):
    """A ledger has too little budget left."""


class SourceError(InputError):
    """A file, folder or table cannot be read."""


class ColumnError(SourceError):
    """A column is missing or has the wrong type."""


class MemoryLimitError(InputError):
    """The work needs more memory than the limit allows."""


class ReleaseError(InputError):
    """A folder cannot be saved to, or does not contain a release."""


class LedgerError(InputError):
    """A ledger cannot be read, written or trusted."""


def required(module: str, use: str, package: str) -> Any:
    """Return a module of an optional package.

    Args:
        module: The name of the module.
        use: The use of the package, as the beginning of the message.
        package: The name of the package on the package index.

    Raises:
        InputError: If the package is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        raise InputError(
            f"{use} needs {package}, which is not installed. Install it with pip install {package}."
        ) from None


def no_thread_started(error: BaseException) -> bool:
    """Return whether Python or Arrow could not start a thread, which happens if memory is exhausted.

    Only the beginning of the message is compared, because the rest of a reader's message may quote data.
    """
    return re.match(r"can't start new thread|([A-Z]\w+ error: )?Failed to launch worker thread", str(error)) is not None


PLEASE_REPORT = "; please report the call."
"""The next step after a bug in voxpop."""


class InternalError(VoxpopError, RuntimeError):
    """A bug in voxpop occurred. Please report it."""

    def __str__(self) -> str:
        """Return the problem and the next step."""
        return super().__str__() + PLEASE_REPORT
