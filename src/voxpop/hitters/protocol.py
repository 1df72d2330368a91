"""Clients and server put together, one user at a time: slow and plain. What is fast must equal it."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from voxpop.hitters.client import Client, cast_vote
from voxpop.hitters.prefix import Prefix
from voxpop.hitters.rules import Rules
from voxpop.hitters.server import count_votes, grow, is_over, votes_cast
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


def round_votes(
    clients: Iterable[Client], trie: Trie, rules: Rules, secret: "Secret"
) -> list[tuple[Prefix, int] | None]:
    """Return what each client says in the next round: its prefix and how many votes for it, or None."""
    return [_said(client, trie, rules, secret) for client in clients]


def _said(client: Client, trie: Trie, rules: Rules, secret: "Secret") -> tuple[Prefix, int] | None:
    # First how often, then what: the number of votes must not depend on the word.
    votes = votes_cast(client.key, client.twin, trie.rounds, rules, secret)
    prefix = cast_vote(client, trie, rules, secret) if votes else None
    return None if prefix is None else (prefix, votes)
