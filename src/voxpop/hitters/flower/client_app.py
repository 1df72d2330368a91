"""The node: reads the table of its own users, draws their votes, and answers each round once.

Its node config says where the table is: `source`, `user`, and one of `text`, `tokens`, `items`, `sequence`; if wanted
`tokenizer`; and with `secure=true` that it answers nothing unless sums are added up in secret.
"""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from voxpop.errors import InputError
from voxpop.hitters.domain import Domain, Sums
from voxpop.hitters.flower.memory import begin, forget, hold_to, keep_votes, kept_votes, recall, remember
from voxpop.hitters.flower.settings import Settings, settings_of
from voxpop.hitters.masking.member import Member
from voxpop.hitters.node import node_votes
from voxpop.hitters.plan import HittersPlan
from voxpop.hitters.prefix import Prefix
from voxpop.hitters.trie import Trie
from voxpop.hitters.wire import read_trie, read_votes, write_votes
from voxpop.privacy.trie.ballot import Ballot

if TYPE_CHECKING:
    from voxpop.corpus import Corpus

COLUMNS = ("text", "tokens", "items", "sequence")

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
    begin(context, trie.rounds)
    votes = node_votes(_corpus_of(context), plan.mechanism.alphabet, trie, plan.rules, settings.secret())
    return {"sums": write_votes(votes)}


def _stage(stage: str, told: Mapping[str, Any], settings: Settings, context: Context) -> dict[str, Any]:
    """Return what this node says in one stage of a round of secure aggregation."""
    if stage == "keys":
        rounds, part = int(told["number"]), int(told["part"])
        begin(context, rounds, part)
        member = Member(f"{context.run_id}/{rounds}/{part}", context.node_id)
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
        domain, sums = _sums(told, settings, context)
        masked = member.masked(dict(zip(nodes, told["letters"], strict=True)), sums)
        return {"sums": masked.astype("<u4").tobytes(), "domain": domain.digest}
    shares = member.unmasking(nodes)
    return {"nodes": [str(node) for node in shares], "shares": list(shares.values())}


def _sums(told: Mapping[str, Any], settings: Settings, context: Context) -> tuple[Domain, Sums]:
    """Return the votes of this node's users as a vector over one part of the round's public domain."""
    trie, plan = read_trie(str(told["trie"])), _checked(told, settings, context)
    if trie.rounds != int(told["number"]):
        raise InputError("the trie is not that of the round that was begun.")
    domain, part = Domain(trie, plan.rules, settings.symbols), int(told["part"])
    if not 0 <= part < domain.parts:
        raise InputError(f"part {part + 1} was asked for, of a round that has {domain.parts}.")
    return domain, domain.vector(_once_drawn(told, trie, domain, plan, settings, context), part)


def _once_drawn(
    told: Mapping[str, Any], trie: Trie, domain: Domain, plan: HittersPlan, settings: Settings, context: Context
) -> Counter[Prefix]:
    """Return the votes of a round: drawn in the first part that this node answers, and the same in all others."""
    rounds, text = trie.rounds, str(told["trie"])
    before = kept_votes(context, rounds, text)
    if before is not None:
        return read_votes(before, trie, plan.rules)
    votes = node_votes(_corpus_of(context), plan.mechanism.alphabet, trie, plan.rules, settings.secret())
    if domain.parts > 1:
        # Drawn anew in each part a user could vote in several, and the guarantee is for one vote.
        keep_votes(context, rounds, text, write_votes(votes))
    return votes


def _checked(told: Mapping[str, Any], settings: Settings, context: Context) -> HittersPlan:
    """Return the plan that the server asks for, checked here against the budget of the run: one for all rounds."""
    rate, theta, again, further = told["ballot"]
    ballot = Ballot(float(rate), int(theta), float(again), float(further))
    # The node's own accountant: the server's word is not enough.
    plan = settings.certified(ballot)
    # One ballot for all rounds: two of them, each within the budget, would not be within it together.
    hold_to(context, ballot)
    return plan


def _corpus_of(context: Context) -> "Corpus":
    return _corpus(tuple(sorted((name, str(value)) for name, value in context.node_config.items())))


@lru_cache(maxsize=1)
def _corpus(config: tuple[tuple[str, str], ...]) -> "Corpus":
    """Read the node's table, once in a process."""
    from voxpop.corpus.reading.read import read_here
    from voxpop.corpus.reading.wanted import Wanted

    given = dict(config)
    if "source" not in given or "user" not in given:
        raise InputError("the node config must name `source`, a file, and `user`, its column of users.")
    cut: Any = given.get("tokenizer", "words")  # what `read` does not know, it refuses
    return read_here(given["source"], Wanted.of(user=given["user"], tokenizer=cut, **_columns(given)))


def _columns(given: Mapping[str, str]) -> dict[str, Any]:
    return {name: given[name] for name in COLUMNS if name in given}
