"""The app of a node for heavy hitters over Flower.

In the first round of a run, a node fixes its users and their words. The node checks every message against its own
configuration and against the first round, draws the votes of its users, and answers each stage once. If any step fails,
the answer is an empty record, and only the log of the node contains the reason.

The node config defines the table (`source`, `user`, one of `text`, `tokens`, `items` and `sequence`, and optionally
`tokenizer`) and the bounds (`state`, `total-epsilon`, `total-delta`, and optionally `max-epsilon`, `max-delta`,
`secure`, `allow-seed` and `keep-hours`).
"""

import json
import traceback
from ast import literal_eval
from collections.abc import Callable, Mapping
from dataclasses import astuple
from logging import WARNING
from typing import TYPE_CHECKING, Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.logger import log

from voxpop.engine.contract import check_engine
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.errors import InputError
from voxpop.mechanisms.heavy_hitters.exclude import PublicList
from voxpop.mechanisms.heavy_hitters.plan import HittersPlan, certified_plan
from voxpop.mechanisms.heavy_hitters.protocol import Trie, polled
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.secret import Secret
from voxpop_flower.federation import Domain, node_votes, read_trie, write_votes
from voxpop_flower.kept import STAGES, Kept, delete_old
from voxpop_flower.masking import Member
from voxpop_flower.own import COLUMNS, LOG, NodeSettings
from voxpop_flower.run import Settings, ballot_of, settings_of

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus

FIRST, LAST, OVER = ("votes", "keys"), ("votes", "unmasking"), "over"
"""The first and the last stage of a round, and the message that ends a run."""
MEMBER = "voxpop-secret"
"""The record of a round's secrets in the context of Flower, which does not leave the node."""
Load = Callable[[Context], "Corpus"]
Configure = Callable[[Context], Mapping[str, Any]]


def client_of(load: Load | None = None, config: Configure | None = None) -> ClientApp:
    """Return the app of a node.

    Args:
        load: A function that returns the data of the node's users, as `voxpop.read` does. The app calls it once per
            run, in the first round that the node answers. By default, the app reads the table that the node config
            names.
        config: A function that returns config values computed in code, for example for the simulation engine of Flower.
            These values override the values of the node config.

    Returns:
        The app for the entry `clientapp` of pyproject.toml.
    """
    app = ClientApp()

    @app.query()
    def vote(message: Message, context: Context) -> Message:
        return Message(RecordDict({"votes": ConfigRecord(answer_of(message, context, load, config))}), reply_to=message)

    return app


client = client_of()


def answer_of(
    message: Message, context: Context, load: Load | None = None, config: Configure | None = None
) -> dict[str, Any]:
    """Return the answer of a node to a message of the server, or an empty answer after any failure.

    Args:
        message: The message.
        context: The context of Flower on the node.
        load: The function of `client_of` that returns the data.
        config: The function of `client_of` that returns values of the node config.
    """
    own: NodeSettings | None = None
    told: dict[str, Any] = {"run": str(context.run_id)}
    try:
        own = NodeSettings.of({**context.node_config, **(config(context) if config else {})})
        question = message.content["round"]
        told |= {name: str(question.get(name)) for name in ("stage", "number")}
        with own.locked():
            answer, ran = _answered(own, question, context, load)
        own.log(**told, **ran)
        return answer
    except (Exception, SystemExit) as error:
        # The text of the error may quote a path or a row, so it is only written to the log of the node. The secrets of
        # the round are kept, because a repeated message raises an error too and must not end the round.
        _report(own, error, told)
        return {}


def _report(own: NodeSettings | None, error: BaseException, told: Mapping[str, Any]) -> None:
    where = "the node config could not be read" if own is None else f"the reason is in {own.state / LOG}"
    try:
        if own is None:
            log(WARNING, "voxpop: %s: %s", where, error if isinstance(error, InputError) else type(error).__name__)
            return
        own.log(**told, refused=str(error), traceback="".join(traceback.format_exception(error)))
    except Exception:
        where = "the log of the node cannot be written"
    log(WARNING, "voxpop: this node did not answer; %s", where)


def _answered(
    own: NodeSettings, told: Mapping[str, Any], context: Context, load: Load | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the answer to a message and the fields of a log line."""
    delete_old(own.runs(), own.keep_hours)
    run, stage = Kept(own.runs(), context.run_id), str(told["stage"])
    if stage == OVER:
        _end(own, run)
        return {}, {"deleted": True}
    settings, number = settings_of(context.run_config), int(told["number"])
    ran = {"epsilon": settings.budget.epsilon, "delta": settings.budget.delta, "seed": settings.seed is not None}
    own.check(settings)
    if stage not in STAGES or settings.secure != (stage != "votes") or number < 0:
        raise InputError("the stage does not belong to this run. Start a new run.")
    exclude = _listed(told) if stage in FIRST else None
    if exclude is not None and not run.exists:
        _admit(own, run, settings, exclude)
    run.require(settings.terms(), None if exclude is None else exclude.fingerprint)
    run.claim(number, stage)
    if exclude is not None:
        rules = settings.mechanism.rules(ballot_of(told["ballot"]))
        run.electorate(lambda: polled(_read(own, context, load), rules, exclude))
    if stage == "votes":
        trie, plan, corpus = _asked(run, told, settings)
        answer: dict[str, Any] = {"sums": write_votes(node_votes(corpus, trie, plan.rules, Secret.of(settings.seed)))}
    else:
        answer = _masked(run, stage, told, settings, context)
    if stage in LAST and number + 1 >= settings.mechanism.rounds:
        _end(own, run)
    return answer, {**ran, "answered": True}


def _listed(told: Mapping[str, Any]) -> PublicList:
    """Return the public words of a message."""
    words = json.loads(str(told["exclude"]))
    if not isinstance(words, list):  # A string would be read as the path of a file on this node.
        raise InputError("the public words of a run must be a list. Start a new run.")
    return PublicList.of(words)


def _admit(own: NodeSettings, run: Kept, settings: Settings, exclude: PublicList) -> None:
    """Charge a new run to the ledger of the node (unless the run has a seed), and create its folder.

    Raises:
        BudgetError: The remaining budget of the node is too small.
        InputError: The node has already taken part in the run, and the folder of the run was deleted.
    """
    account, label = own.account(), _label(run)
    if account.entry(label) is not None:
        raise InputError("the folder of this run was lost, or deleted after its time. Start a new run.")
    if settings.seed is None:
        # Charge before the folder is created. After a crash between the two steps, the run is charged but never
        # answered.
        account.charge(Guarantee(settings.budget.epsilon, settings.budget.delta), "heavy hitters", label)
    run.start(settings.terms(), exclude.fingerprint)


def _end(own: NodeSettings, run: Kept) -> None:
    """Delete the folder of a run (or only its words, if the run has a seed), so that no message is answered again."""
    if not run.exists:
        return
    account = own.account()
    entry = account.entry(_label(run))
    if entry is None:
        # A run with a seed is not in the ledger, so the record of its answers is kept until the folder expires.
        run.delete_words()
        return
    run.delete()
    if entry.state == "charged":
        account.finish(entry)


def _label(run: Kept) -> str:
    return f"run {run.path.name}"


def _read(own: NodeSettings, context: Context, load: Load | None) -> LocalCorpus:
    """Return the data of the node's users."""
    corpus: LocalCorpus = check_engine(load(context)).gathered() if load else _table(own.table)
    return corpus


def _table(given: Mapping[str, str]) -> LocalCorpus:
    from voxpop.engine.local.read import read_here
    from voxpop.reading.wanted import Request, Tokenizer

    if "source" not in given or "user" not in given:
        raise InputError("the node config must name `source`, a file, and `user`, its user column.")
    cut: Any = given.get("tokenizer", "words")  # `read` raises an error for unknown names.
    columns: dict[str, Any] = {name: given[name] for name in COLUMNS if name in given}
    return read_here(given["source"], Request.of(user=given["user"], tokenizer=Tokenizer(cut), **columns))


def _asked(run: Kept, told: Mapping[str, Any], settings: Settings) -> tuple[Trie, HittersPlan, LocalCorpus]:
    """Return the trie, the plan and the users of the next vote, after checking the vote against the budget of the run.

    Raises:
        BudgetError: The votes exceed the budget.
        InputError: An earlier round had a different ballot or trie.
    """
    trie, ballot = read_trie(str(told["trie"])), [float(each) for each in told["ballot"]]
    if trie.rounds != int(told["number"]):
        raise InputError("the trie differs from the trie at the start of the round. Start a new run.")
    # The node computes the privacy loss itself, because it does not trust claims of the server.
    plan = certified_plan(settings.mechanism, settings.mechanism.rules(ballot_of(ballot)), settings.budget)
    # All rounds use one ballot and one trie, because two ballots or tries within the budget would exceed it together.
    run.require_votes(ballot, trie, plan.rules)
    return trie, plan, run.electorate(_lost)


def _lost() -> LocalCorpus:
    raise InputError("the words of this run were not fixed in an earlier stage. Start a new run.")


def _masked(run: Kept, stage: str, told: Mapping[str, Any], settings: Settings, context: Context) -> dict[str, Any]:
    """Return the answer in one stage of a round of secure aggregation."""
    session = f"{context.run_id}/{int(told['number'])}"
    if stage == "keys":
        member = Member(session, context.node_id)
        answer: dict[str, Any] = {"keys": list(member.keys())}
    else:
        member, nodes = recall(context, session), [int(node) for node in told["nodes"]]
        if stage == "masked":
            trie, plan, corpus = _asked(run, told, settings)
            domain = Domain(trie, plan.rules, settings.symbols)
            sums = domain.vector(node_votes(corpus, trie, plan.rules, Secret.of(settings.seed)))
            masked = member.masked(dict(zip(nodes, told["letters"], strict=True)), sums)
            answer = {"sums": masked.astype("<u4").tobytes(), "domain": domain.digest}
        elif stage == "shares":
            keys = zip(told["masks"], told["letters"], strict=True)
            answer = _by_node("letters", member.shares(dict(zip(nodes, keys, strict=True))))
        else:
            answer = _by_node("shares", member.unmasking(nodes))
    # The last stage of a round deletes its secrets.
    context.state.pop(MEMBER, None)
    if stage != "unmasking":
        context.state[MEMBER] = ConfigRecord({"fields": repr(astuple(member))})
    return answer


def _by_node(name: str, answers: Mapping[int, bytes]) -> dict[str, Any]:
    return {"nodes": [str(node) for node in answers], name: list(answers.values())}


def recall(context: Context, session: str) -> Member:
    """Return the member of the previous stage, which is stored with its fields as Python literals.

    Raises:
        InputError: This round has no stored member.
    """
    kept = context.state.get(MEMBER)
    member = Member(*literal_eval(str(kept["fields"]))) if isinstance(kept, ConfigRecord) else None
    if member is None or member.session != session:
        raise InputError("the server requested a later stage before the first stage of the round. Start a new run.")
    return member
