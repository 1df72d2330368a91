"""Clients and server put together, one user at a time: slow and plain. What is fast must equal it."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from voxpop.hitters.client import Client, cast_vote
from voxpop.hitters.prefix import Prefix
from voxpop.hitters.rules import Rules
from voxpop.hitters.server import count_votes, grow, is_over, is_sampled
from voxpop.hitters.trie import Trie

if TYPE_CHECKING:
    from voxpop.privacy.secret import Secret


def run_protocol(clients: Sequence[Client], rules: Rules, secret: "Secret") -> Trie:
    """Run every round with Bernoulli sampling.

    Args:
        clients: one per user.
        rules: the public rules.
        secret: of the run.

    Returns:
        The trie when it is over.
    """
    trie = Trie()
    while not is_over(trie, rules):
        votes = round_votes(clients, trie, rules, secret)
        trie = grow(trie, count_votes(votes, trie, rules), rules)
    return trie


def round_votes(clients: Iterable[Client], trie: Trie, rules: Rules, secret: "Secret") -> list[Prefix | None]:
    """Return what each client says in the next round: its vote if it is sampled, else None."""
    return [
        cast_vote(client, trie, rules, secret)
        if is_sampled(client.key, client.twin, trie.rounds, rules, secret)
        else None
        for client in clients
    ]
