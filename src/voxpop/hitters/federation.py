"""The server's side of a round over any transport: answers in, the next trie out, and what to tell the operator."""

from collections import Counter
from collections.abc import Iterable, Mapping

from voxpop.errors import InputError
from voxpop.hitters.prefix import Prefix
from voxpop.hitters.rules import Rules
from voxpop.hitters.server import grow
from voxpop.hitters.trie import Trie
from voxpop.hitters.wire import read_votes


def next_trie(
    trie: Trie, asked: Iterable[int], answers: Iterable[tuple[int, object]], rules: Rules
) -> tuple[Trie, list[str]]:
    """Return the trie after a round, and one line for each node whose votes are missing from it.

    A node that was lost, came late or said something malformed is a set of users who were not asked: the round goes on
    without it, and the guarantee holds. A second answer of a node is not counted.

    Args:
        trie: as it is before the round.
        asked: numbers of the nodes that were asked.
        answers: number of the node and what it said.
        rules: the public rules.
    """
    waiting = dict.fromkeys(asked, "did not answer in time")
    total: Counter[Prefix] = Counter()
    for node, text in answers:
        if node not in waiting:
            continue
        try:
            total.update(read_votes(text, trie, rules))
            # From here on a second answer counts as a stranger's.
            del waiting[node]
        except InputError as error:
            waiting[node] = f"sent what is no vote: {error}"
    return grow(trie, total, rules), _complaints(trie, waiting)


def _complaints(trie: Trie, waiting: Mapping[int, str]) -> list[str]:
    return [f"round {trie.rounds + 1}: node {node} {what}; going on without it" for node, what in waiting.items()]
