"""The node: reads the table of its own users, draws their votes, and answers each round once.

Its node config says where the table is: `source`, `user`, and one of `text`, `tokens`, `items`, `sequence`; if wanted
`tokenizer`; and with `secure=true` that it answers nothing unless sums are added up in secret.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from voxpop.errors import InputError
from voxpop.hitters.domain import Domain
from voxpop.hitters.flower.memory import forget, hold_to, recall, remember
from voxpop.hitters.flower.settings import Settings, settings_of
from voxpop.hitters.masking.member import Member
from voxpop.hitters.node import node_votes
from voxpop.hitters.plan import HittersPlan
from voxpop.hitters.wire import read_trie, write_votes
from voxpop.privacy.trie.ballot import Ballot

if TYPE_CHECKING:
    from voxpop.corpus import Corpus

COLUMNS = ("text", "tokens", "items", "sequence")
MEMORY = "voxpop"

app = ClientApp()


@app.query()
def vote(message: Message, context: Context) -> Message:
    """Answer a round, or a stage of one: the trie comes in, sums of votes go out, or what masks them."""
    settings = settings_of(context.run_config)
    told = message.content["round"]
    stage = str(told["stage"])
    # No way down from masked sums to open ones, whoever asks.
    if settings.secure != (stage != "votes") or (context.node_config.get("secure") is True and not settings.secure):
        raise InputError(
            "this node was asked for sums in the open, and tells them masked only, or the other way round."
        )
    answer = _votes(told, settings, context) if stage == "votes" else _stage(stage, told, settings, context)
    return Message(RecordDict({"votes": ConfigRecord(answer)}), reply_to=message)


def _votes(told: Mapping[str, Any], settings: Settings, context: Context) -> dict[str, Any]:
    """Return the sums of a round, in the open."""
    trie, plan = read_trie(str(told["trie"])), _checked(told, settings, context)
    _answer_once(context, trie.rounds)
    votes = node_votes(_corpus_of(context), plan.mechanism.alphabet, trie, plan.rules, settings.secret())
    return {"sums": write_votes(votes)}


def _stage(stage: str, told: Mapping[str, Any], settings: Settings, context: Context) -> dict[str, Any]:
    """Return what this node says in one stage of a round of secure aggregation."""
    if stage == "keys":
        _answer_once(context, int(told["number"]))
        member = Member(f"{context.run_id}/{int(told['number'])}", context.node_id)
        answer: dict[str, Any] = {"keys": list(member.keys())}
    else:
        member = recall(context)
        answer = _later_stage(member, stage, told, settings, context)
    remember(context, member)
    if stage == "unmasking":
        forget(context)
    return answer


def _later_stage(
    member: Member, stage: str, told: Mapping[str, Any], settings: Settings, context: Context
) -> dict[str, Any]:
    nodes = [int(node) for node in told["nodes"]]
    if stage == "shares":
        letters = member.shares(dict(zip(nodes, zip(told["masks"], told["letters"], strict=True), strict=True)))
        return {"nodes": [str(node) for node in letters], "letters": list(letters.values())}
    if stage == "masked":
        sums = _sums(told, settings, context)
        return {"sums": member.masked(dict(zip(nodes, told["letters"], strict=True)), sums).astype("<u4").tobytes()}
    shares = member.unmasking(nodes)
    return {"nodes": [str(node) for node in shares], "shares": list(shares.values())}


def _sums(told: Mapping[str, Any], settings: Settings, context: Context) -> Any:
    """Return the votes of this node's users as a vector over the round's public domain."""
    trie, plan = read_trie(str(told["trie"])), _checked(told, settings, context)
    if trie.rounds != int(told["number"]):
        raise InputError("the trie is not that of the round that was begun.")
    domain = Domain(trie, plan.rules, settings.symbols)
    return domain.vector(node_votes(_corpus_of(context), plan.mechanism.alphabet, trie, plan.rules, settings.secret()))


def _checked(told: Mapping[str, Any], settings: Settings, context: Context) -> HittersPlan:
    """Return the plan that the server asks for, checked here against the budget of the run: one for all rounds."""
    rate, theta, again, further = told["ballot"]
    ballot = Ballot(float(rate), int(theta), float(again), float(further))
    # The node's own accountant: the server's word is not enough.
    plan = settings.certified(ballot)
    # One ballot for all rounds: two of them, each within the budget, would not be within it together.
    hold_to(context, ballot)
    return plan


def _answer_once(context: Context, rounds: int) -> None:
    """Remember which round was answered: a second answer to the same one would draw new votes."""
    memory = context.state.get(MEMORY)
    answered = int(memory["rounds"]) if memory is not None else -1
    if rounds <= answered:
        raise InputError(f"round {rounds + 1} of this run was answered before; a node answers each round once.")
    context.state[MEMORY] = ConfigRecord({"rounds": rounds})


def _corpus_of(context: Context) -> "Corpus":
    return _corpus(tuple(sorted((name, str(value)) for name, value in context.node_config.items())))


@lru_cache(maxsize=1)
def _corpus(config: tuple[tuple[str, str], ...]) -> "Corpus":
    """Read the node's table, once in a process."""
    from voxpop.corpus.reading.read import read

    given = dict(config)
    if "source" not in given or "user" not in given:
        raise InputError("the node config must name `source`, a file, and `user`, its column of users.")
    cut: Any = given.get("tokenizer", "words")  # what `read` does not know, it refuses
    return read(given["source"], user=given["user"], tokenizer=cut, **_columns(given))


def _columns(given: Mapping[str, str]) -> dict[str, Any]:
    return {name: given[name] for name in COLUMNS if name in given}
