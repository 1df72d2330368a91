"""What the server of a federation saw, and under which trust the guarantee stands: sentences for the record."""

from typing import Literal

Seen = Literal["", "nodes", "total"]

SAW = {
    "nodes": "In each round the server saw the sums of votes of every node, before the threshold.",
    "total": "In each round the server saw the total of all nodes' sums of votes, before the threshold, and of no node "
    "its own sums.",
}
TRUST = {
    "nodes": "The guarantee is about what is released, not against the server. It stands if the server applies the "
    "threshold and keeps the sums to itself, if nodes draw votes as they should and tell nobody, and if each user "
    "lives on one node.",
    "total": "The guarantee is about what is released, not against the server. It stands if the server applies the "
    "threshold and keeps the total to itself, if nodes draw votes as they should and tell nobody, and if each user "
    "lives on one node. That a node's own sums stay hidden needs a server that hands on the nodes' keys unchanged, and "
    "fewer than a third of the nodes working with it.",
}


def trust_of(seen: Seen) -> dict[str, str]:
    """Return what a record says: nothing where there was no server.

    Args:
        seen: "nodes", "total", or "" where all users were on one machine.
    """
    return {"server_saw": SAW[seen], "trust": TRUST[seen]} if seen else {}
