"""The ledger, a file with the privacy budget and the releases of each data set of a team."""

from voxpop.ledger.entry import Entry
from voxpop.ledger.ledger import Ledger, LedgerAccount

__all__ = ["Entry", "Ledger", "LedgerAccount"]
