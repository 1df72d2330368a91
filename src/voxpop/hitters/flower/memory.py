"""What a node keeps of a run, and of a secure round between its stages: in Flower's state, which stays on the node."""

from flwr.app import ConfigRecord, Context

from voxpop.errors import InputError
from voxpop.hitters.masking.member import Member
from voxpop.privacy.trie.ballot import Ballot

PLACE = "voxpop-secret"
BALLOT = "voxpop-ballot"
ANSWERED = "voxpop-answered"
VOTES = "voxpop-votes"


def begin(context: Context, rounds: int, part: int = 0) -> None:
    """Remember what is being answered, and in which run: what was kept of another run is dropped.

    Args:
        context: of the node.
        rounds: how many rounds have gone by.
        part: of the round, from 0.

    Raises:
        InputError: where this or a later part of this run was answered before; a second answer would draw new votes.
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
    """Keep a node's votes of a round for its other parts: a user votes once in a round, in whichever part.

    Args:
        context: of the node.
        rounds: how many rounds have gone by.
        trie: as the server told it.
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
        raise InputError("the server tells another trie than in an earlier part of this round; nothing is answered.")
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
        raise InputError("a stage was asked for before the round's first one.")
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
    """Remember how users vote in this run: what was accounted for is the same ballot in every round.

    Raises:
        InputError: if an earlier round had another.
    """
    asked = [ballot.rate, float(ballot.theta), ballot.again, ballot.further]
    before = context.state.get(BALLOT)
    if before is not None and list(before["numbers"]) != asked:
        raise InputError("the server asks for other votes than in an earlier round of this run; nothing is answered.")
    context.state[BALLOT] = ConfigRecord({"numbers": asked})
