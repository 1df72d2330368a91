"""What a mechanism asks of an account before it touches data."""

from typing import Protocol, TypeVar

Corpus = TypeVar("Corpus", contravariant=True)
Released = TypeVar("Released", covariant=True)


class Releasing(Protocol[Corpus, Released]):
    """A plan: everything is settled but the data."""

    def release(self, corpus: Corpus, seed: int | None = None) -> Released:
        """Run the plan on a corpus."""


class Account(Protocol):
    """The account of one data set: charged first, then the release runs; see `voxpop.Ledger`."""

    def release(self, plan: Releasing[Corpus, Released], corpus: Corpus, seed: int | None = None) -> Released:
        """Charge what a plan guarantees, then return `plan.release(corpus)`."""


def run(plan: Releasing[Corpus, Released], corpus: Corpus, seed: int | None, ledger: Account | None) -> Released:
    """Run a plan, charged to a ledger first where one is given."""
    return plan.release(corpus, seed) if ledger is None else ledger.release(plan, corpus, seed)
