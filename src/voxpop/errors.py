"""The exceptions that voxpop raises.

```
VoxpopError
├── InputError (also ValueError)      the call or the data cannot be used as given
│   ├── BudgetError                   epsilon, delta or another parameter of the guarantee is out of range
│   │   └── ExhaustedError            a ledger has too little budget left
│   ├── SourceError                   a file, folder or table cannot be read
│   │   └── ColumnError               a column is missing or has the wrong type
│   ├── MemoryLimitError              the work needs more memory than it was allowed
│   ├── ReleaseError                  a folder cannot be saved to, or is not a release
│   ├── LedgerError                   a ledger cannot be read, written or trusted
│   └── UnsoundError                  a mechanism that has no proof, refused by name with the reason
└── InternalError (also RuntimeError) our own bug
```

Messages contain the problem, the requirement and the next step. They show parameters, column names, file names and
rounded row numbers (exact ones with `exact=True`), and never an item, a count of users or a user's name.
"""


def shown(text: str) -> str:
    r"""Return a text with everything that a terminal might obey written as an escape; line feeds remain.

    Names of files, labels and released text may contain control characters and characters that change the direction of
    text. Everything that the command line, exceptions and `print` show passes through this function.

    Example:
        >>> print(shown("tea\x1b[2J"))
        tea\x1b[2J
    """
    return text if text.isprintable() else "\n".join("".join(map(_escaped, line)) for line in text.split("\n"))


def _escaped(letter: str) -> str:
    return letter if letter.isprintable() else letter.encode("unicode_escape").decode()


def on_one_line(text: str) -> str:
    """Return the same without line feeds, for a label or a name among other text."""
    return shown(text).replace("\n", "\\n")


class VoxpopError(Exception):
    """The root: catch this to catch everything voxpop raises on purpose."""

    def __str__(self) -> str:
        """Return the message, in which a terminal finds nothing to obey."""
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
    """The work needs more memory than it was allowed."""


class ReleaseError(InputError):
    """A folder cannot be saved to, or does not hold a release."""


class LedgerError(InputError):
    """A ledger cannot be read, written or trusted."""


class UnsoundError(InputError):
    """A mechanism without a proof, refused by name with the reason."""


PLEASE_REPORT = "; please report the call."
"""The next step after a fault of voxpop itself."""


class InternalError(VoxpopError, RuntimeError):
    """A fault of voxpop itself; please report it."""

    def __str__(self) -> str:
        """Return the problem and the next step."""
        return super().__str__() + PLEASE_REPORT
