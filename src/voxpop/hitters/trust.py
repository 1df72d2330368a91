"""What the server of a federation saw, and under which trust the guarantee stands: sentences for the record."""

from typing import Literal

Aggregation = Literal["", "open", "secure"]
"""How nodes' sums of votes were added up: the server saw each, or their total only; "" where there was no server."""

SEEN: dict[Aggregation, str] = {
    "": "",
    "open": "In each round the server saw the sums of votes of every node, before the threshold.",
    "secure": "In each round the server saw the total of all nodes' sums of votes, before the threshold, and of no "
    "node its own sums.",
}
"""What the guarantee of a run says that it does not cover."""
TRUST: dict[Aggregation, str] = {
    "": "",
    "open": "The guarantee is about what is released, not against the server. It stands if the server applies the "
    "threshold and keeps the sums to itself, if nodes draw votes as they should, add none and tell nobody, and if each "
    "user lives on one node.",
    "secure": "The guarantee is about what is released, not against the server. It stands if the server applies the "
    "threshold and keeps the total to itself, if nodes draw votes as they should, add none and tell nobody, and if "
    "each user lives on one node. That a node's own sums stay hidden needs a server that hands on the nodes' keys "
    "unchanged, and fewer than a third of the nodes working with it.",
}
"""What the plan of a run says."""
