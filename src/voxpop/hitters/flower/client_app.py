"""The node: reads the table of its own users, tosses their coins, and answers each round once with sums of votes.

Its node config says where the table is: `source`, `user`, and one of `text`, `tokens`, `items`, `sequence`; and if
wanted `tokenizer`.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from voxpop.errors import InputError
from voxpop.hitters.flower.settings import settings_of
from voxpop.hitters.node import node_votes
from voxpop.hitters.wire import read_trie, write_votes

if TYPE_CHECKING:
    from voxpop.corpus import Corpus

COLUMNS = ("text", "tokens", "items", "sequence")
MEMORY = "voxpop"

app = ClientApp()


@app.query()
def vote(message: Message, context: Context) -> Message:
    """Answer a round: the trie comes in, sums of votes go out."""
    settings = settings_of(context.run_config)
    trie = read_trie(str(message.content["round"]["trie"]))
    _answer_once(context, trie.rounds)
    node = context.node_config
    corpus = _corpus(tuple(sorted((name, str(value)) for name, value in node.items())))
    plan = settings.plan
    votes = node_votes(corpus, plan.mechanism.alphabet, trie, plan.rules, settings.secret())
    return Message(RecordDict({"votes": ConfigRecord({"sums": write_votes(votes)})}), reply_to=message)


def _answer_once(context: Context, rounds: int) -> None:
    """Remember which round was answered: a second answer to the same one would toss new coins."""
    memory = context.state.get(MEMORY)
    answered = int(memory["rounds"]) if memory is not None else -1
    if rounds <= answered:
        raise InputError(f"round {rounds + 1} of this run was answered before; a node answers each round once.")
    context.state[MEMORY] = ConfigRecord({"rounds": rounds})


@lru_cache(maxsize=1)
def _corpus(config: tuple[tuple[str, str], ...]) -> "Corpus":
    """Read the node's table, once in a process."""
    from voxpop.corpus.reading.read import read

    given = dict(config)
    if "source" not in given or "user" not in given:
        raise InputError("the node config must name `source`, a file, and `user`, its column of users.")
    return read(given["source"], user=given["user"], tokenizer=given.get("tokenizer", "words"), **_columns(given))


def _columns(given: Mapping[str, str]) -> dict[str, Any]:
    return {name: given[name] for name in COLUMNS if name in given}
