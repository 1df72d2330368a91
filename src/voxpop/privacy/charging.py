"""What a mechanism asks of an account before it touches data."""

from typing import Any, Protocol


class Account(Protocol):
    """The account of one data set: charged first, then the release runs; see `voxpop.Ledger`."""

    def release(self, plan: Any, corpus: Any, seed: int | None = None) -> Any:
        """Charge what a plan guarantees, then return `plan.release(corpus)`."""
