"""The ledger: a file with the privacy budget and the releases of each data set of a team."""

from voxpop.ledger.ledger import Entry, Ledger, LedgerAccount

__all__ = ["Entry", "Ledger", "LedgerAccount"]
