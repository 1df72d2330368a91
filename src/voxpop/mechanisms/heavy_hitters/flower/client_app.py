"""The node: reads the table of its users, draws their votes, and answers each round once.

Its node config defines the table: `source`, `user`, and one of `text`, `tokens`, `items`, `sequence`; if wanted
`tokenizer`; and with `secure=true` the node answers only if sums are added up in secret.
"""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from voxpop.errors import InputError
from voxpop.mechanisms.heavy_hitters.federation import Domain, Sums, node_votes, read_trie, read_votes, write_votes
from voxpop.mechanisms.heavy_hitters.flower.settings import Settings, settings_of
from voxpop.mechanisms.heavy_hitters.masking import Member
from voxpop.mechanisms.heavy_hitters.plan import HittersPlan
from voxpop.mechanisms.heavy_hitters.protocol import Prefix, Trie
from voxpop.privacy.trie.ballot import Ballot

if TYPE_CHECKING:
    from voxpop.engine.local.corpus import LocalCorpus


# State of a run, kept in Flower's context on the node.

PLACE = "voxpop-secret"
BALLOT = "voxpop-ballot"
ANSWERED = "voxpop-answered"
VOTES = "voxpop-votes"


def begin(context: Context, rounds: int, part: int = 0) -> None:
    """Record the round that is answered, and its run. Records of another run are dropped.

    Args:
        context: of the node.
        rounds: number of completed rounds.
        part: of the round, from 0.

    Raises:
        InputError: if this or a later part of this run was answered before; a second answer would draw new votes.
    """
    before = context.state.get(ANSWERED)
    run = str(context.run_id)
    if before is not None and before["run"] != run:
        # Flower can hand the state of one run on to the next of a series.
        for name in (PLACE, BALLOT, VOTES):
            context.state.pop(name, None)
    elif before is not None and (rounds, part) <= (int(before["rounds"]), int(before["part"])):
        raise InputError(f"round {rounds + 1} of this run was answered before; a node answers each round once.")
    context.state[ANSWERED] = ConfigRecord({"run": run, "rounds": rounds, "part": part})


def keep_votes(context: Context, rounds: int, trie: str, votes: str) -> None:
    """Keep a node's votes of a round for its other parts: a user votes once in a round, in one of the parts.

    Args:
        context: of the node.
        rounds: number of completed rounds.
        trie: as received from the server.
        votes: as text.
    """
    context.state[VOTES] = ConfigRecord({"rounds": rounds, "trie": trie, "votes": votes})


def kept_votes(context: Context, rounds: int, trie: str) -> str | None:
    """Return the votes that were drawn in an earlier part of a round, or None where there was none.

    Raises:
        InputError: if the round had another trie then.
    """
    kept = context.state.get(VOTES)
    if kept is None or int(kept["rounds"]) != rounds:
        return None
    if kept["trie"] != trie:
        raise InputError(
            "the server sent another trie than in an earlier part of this round, "
            "so this node sends nothing. Start a new run."
        )
    return str(kept["votes"])


def remember(context: Context, member: Member) -> None:
    """Keep a member until the next stage."""
    context.state[PLACE] = ConfigRecord(
        {
            "session": member.session,
            "number": str(member.number),
            "secrets": list(member.secrets),
            "peers": [str(peer) for peer in member.peers],
            "keys": [key for pair in member.peers.values() for key in pair],
            "senders": [str(sender) for sender in member.letters],
            "letters": list(member.letters.values()),
            "said": member.said,
        }
    )


def recall(context: Context) -> Member:
    """Return the member of the stage before.

    Raises:
        InputError: if there is none.
    """
    kept = context.state.get(PLACE)
    if not isinstance(kept, ConfigRecord):
        raise InputError("the server requested a later stage before the first one of the round. Start a new run.")
    keys = kept["keys"]
    first, second, third = kept["secrets"]
    return Member(
        str(kept["session"]),
        int(str(kept["number"])),
        (first, second, third),
        {int(peer): (keys[2 * place], keys[2 * place + 1]) for place, peer in enumerate(kept["peers"])},
        dict(zip(map(int, kept["senders"]), kept["letters"], strict=True)),
        int(kept["said"]),
    )


def forget(context: Context) -> None:
    """Drop the secrets of a round that is over."""
    context.state.pop(PLACE, None)


def hold_to(context: Context, ballot: Ballot) -> None:
    """Record the ballot of this run: accounting requires the same ballot in every round.

    Raises:
        InputError: if an earlier round had another.
    """
    asked = [ballot.rate, float(ballot.theta), ballot.again, ballot.further]
    before = context.state.get(BALLOT)
    if before is not None and list(before["numbers"]) != asked:
        raise InputError("the server asks for other votes than in an earlier round of this run; nothing is answered.")
    context.state[BALLOT] = ConfigRecord({"numbers": asked})


COLUMNS = ("text", "tokens", "items", "sequence")

app = ClientApp()


@app.query()
def vote(message: Message, context: Context) -> Message:
    """Answer a round, or a stage of one: receive the trie, return sums of votes or their masks."""
    settings = settings_of(context.run_config)
    told = message.content["round"]
    stage = str(told["stage"])
    # A node that requires masked sums refuses open ones for every server.
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
    """Return this node's answer in one stage of a round of secure aggregation."""
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
        raise InputError("the trie is not the one with which the round began. Start a new run.")
    domain, part = Domain(trie, plan.rules, settings.symbols), int(told["part"])
    if not 0 <= part < domain.parts:
        raise InputError(f"the server requested part {part + 1} of a round with {domain.parts} parts. Start a new run.")
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
    """Return the plan that the server requests, checked here against the budget of the run: one for all rounds."""
    rate, theta, again, further = told["ballot"]
    ballot = Ballot(float(rate), int(theta), float(again), float(further))
    # The node's own accountant: the server's word is not enough.
    plan = settings.certified(ballot)
    # One ballot for all rounds: two of them, each within the budget, would not be within it together.
    hold_to(context, ballot)
    return plan


def _corpus_of(context: Context) -> "LocalCorpus":
    return _corpus(tuple(sorted((name, str(value)) for name, value in context.node_config.items())))


@lru_cache(maxsize=1)
def _corpus(config: tuple[tuple[str, str], ...]) -> "LocalCorpus":
    """Read the node's table, once in a process."""
    from voxpop.engine.local.read import read_here
    from voxpop.reading.wanted import Wanted

    given = dict(config)
    if "source" not in given or "user" not in given:
        raise InputError("the node config must name `source`, a file, and `user`, its column of users.")
    cut: Any = given.get("tokenizer", "words")  # `read` refuses unknown names
    return read_here(given["source"], Wanted.of(user=given["user"], tokenizer=cut, **_columns(given)))


def _columns(given: Mapping[str, str]) -> dict[str, Any]:
    return {name: given[name] for name in COLUMNS if name in given}
