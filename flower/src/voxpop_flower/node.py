"""Heavy hitters over Flower: the configuration of a run, the app of a node, and the app of the server.

The server plans, and every node checks that the plan keeps to the budget. A node reads the table of its users, draws
their votes, and answers each round once. The server waits for nodes, queries them round by round, grows the trie from
sums of votes, and saves the release.

The node config defines the table: `source`, `user`, and one of `text`, `tokens`, `items`, `sequence`; if wanted
`tokenizer`; and with `secure=true` the node answers only if sums are added up in secret.
"""

import time
from ast import literal_eval
from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from functools import lru_cache
from logging import INFO, WARNING, LogRecord, getLogger
from typing import Any, final

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.common.logger import LOGGER_NAME, log
from flwr.serverapp import Grid, ServerApp

from voxpop.engine.local.corpus import LocalCorpus
from voxpop.errors import InputError, VoxpopError
from voxpop.mechanisms.heavy_hitters import federation
from voxpop.mechanisms.heavy_hitters.federation import Domain, Sums, node_votes, read_trie, write_trie, write_votes
from voxpop.mechanisms.heavy_hitters.masking import LEAST_NODES, Collector, Member
from voxpop.mechanisms.heavy_hitters.mechanism import HeavyHitters
from voxpop.mechanisms.heavy_hitters.plan import HittersPlan, certified_plan
from voxpop.mechanisms.heavy_hitters.protocol import Symbol, Trie, gram_of, grow, is_over
from voxpop.mechanisms.heavy_hitters.releasing import release_of
from voxpop.privacy.budget import Budget
from voxpop.privacy.planned import with_record
from voxpop.privacy.secret import Secret
from voxpop.privacy.trie.ballot import Ballot
from voxpop.release.saving import RELEASE

FIELDS = {"max-length": "max_length", "alphabet": "alphabet", "unit": "unit"}
NO_SEED = -1
PAUSE, PATIENCE = 0.5, 300.0
"""Seconds between looks for nodes; and for everything that a busy machine must do within a stage of a round."""
COLUMNS = ("text", "tokens", "items", "sequence")
MEMBER, BALLOT, ANSWERED = "voxpop-secret", "voxpop-ballot", "voxpop-answered"
"""The records of a run in Flower's context on the node."""

client = ClientApp()
server = ServerApp()


@final
@dataclass(frozen=True, slots=True)
class Settings:
    """One run.

    Attributes:
        mechanism: the mechanism that runs.
        budget: the budget of the run.
        seed: of a run that is NOT private, or None.
        nodes: number of nodes to wait for before the first round.
        patience: seconds to wait for them, and for the answers of a round or a stage of it.
        output: where the server saves the release.
        secure: whether sums are added up in secret, so that the server sees their total only.
        symbols: the public alphabet, if so.
    """

    mechanism: HeavyHitters
    budget: Budget
    seed: int | None
    nodes: int
    patience: float
    output: str
    secure: bool
    symbols: tuple[Symbol, ...]

    @property
    def plan(self) -> HittersPlan:
        """The plan that the server runs."""
        return self.mechanism.plan(self.budget)


def settings_of(config: Mapping[str, Any]) -> Settings:
    """Return the settings of a Flower run.

    Args:
        config: its run config: epsilon and delta, and if wanted max-length, alphabet, unit, secure, symbols,
            seed, nodes, patience and output.

    Raises:
        InputError: where something is missing or out of range.
    """
    for name in ("epsilon", "delta"):
        if name not in config:
            raise InputError(f"the run config has no {name}; set it in pyproject.toml or with flwr run --run-config.")
    seed, secure = int(config.get("seed", NO_SEED)), config.get("secure", True)
    nodes = int(config.get("nodes", LEAST_NODES))
    if type(secure) is not bool:
        raise InputError(f"`secure` must be true or false, got {type(secure).__name__}.")
    if secure and nodes < LEAST_NODES:
        raise InputError(
            f"sums of {nodes} nodes cannot be added up in secret: `nodes` must be at least {LEAST_NODES}, or `secure` "
            "false, and then the server sees the sums of each node."
        )
    mechanism = HeavyHitters(**{FIELDS[name]: config[name] for name in FIELDS if name in config})
    symbols = str(config.get("symbols", "")) or None
    return Settings(
        mechanism,
        Budget(float(config["epsilon"]), float(config["delta"])),
        seed=None if seed == NO_SEED else seed,
        nodes=nodes,
        patience=float(config.get("patience", PATIENCE)),
        output=str(config.get("output", "hitters")),
        secure=secure,
        symbols=federation.public_symbols(mechanism.alphabet, symbols) if secure else (),
    )


# ---- A node ----


@client.query()
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
    answer = open_sums(told, settings, context) if stage == "votes" else _stage(stage, told, settings, context)
    return Message(RecordDict({"votes": ConfigRecord(answer)}), reply_to=message)


def open_sums(told: Mapping[str, Any], settings: Settings, context: Context) -> dict[str, Any]:
    """Return the sums of a round, in the open."""
    trie, plan = read_trie(str(told["trie"])), _checked(told, settings, context)
    begin(context, trie.rounds)
    return {"sums": write_votes(node_votes(_corpus_of(context), trie, plan.rules, Secret.of(settings.seed)))}


def _stage(stage: str, told: Mapping[str, Any], settings: Settings, context: Context) -> dict[str, Any]:
    """Return this node's answer in one stage of a round of secure aggregation."""
    if stage == "keys":
        rounds = int(told["number"])
        begin(context, rounds)
        member = Member(f"{context.run_id}/{rounds}", context.node_id)
        answer: dict[str, Any] = {"keys": list(member.keys())}
    else:
        member, nodes = recall(context), [int(node) for node in told["nodes"]]
        if stage == "masked":
            domain, sums = _sums(told, settings, context)
            masked = member.masked(dict(zip(nodes, told["letters"], strict=True)), sums)
            answer = {"sums": masked.astype("<u4").tobytes(), "domain": domain.digest}
        elif stage == "shares":
            keys = zip(told["masks"], told["letters"], strict=True)
            answer = _by_node("letters", member.shares(dict(zip(nodes, keys, strict=True))))
        else:
            answer = _by_node("shares", member.unmasking(nodes))
    remember(context, member)
    if stage == "unmasking":
        # The round is over: its secrets are dropped.
        context.state.pop(MEMBER, None)
    return answer


def _by_node(name: str, answers: Mapping[int, bytes]) -> dict[str, Any]:
    return {"nodes": [str(node) for node in answers], name: list(answers.values())}


def _sums(told: Mapping[str, Any], settings: Settings, context: Context) -> tuple[Domain, Sums]:
    """Return the votes of this node's users as a vector over the round's public domain."""
    trie, plan = read_trie(str(told["trie"])), _checked(told, settings, context)
    if trie.rounds != int(told["number"]):
        raise InputError("the trie is not the one with which the round began. Start a new run.")
    domain = Domain(trie, plan.rules, settings.symbols)
    return domain, domain.vector(node_votes(_corpus_of(context), trie, plan.rules, Secret.of(settings.seed)))


def _checked(told: Mapping[str, Any], settings: Settings, context: Context) -> HittersPlan:
    """Return the plan that the server requests, checked here against the budget of the run: one for all rounds.

    Raises:
        BudgetError: if the votes exceed the budget.
        InputError: if an earlier round had another ballot.
    """
    rate, theta, again, further = told["ballot"]
    ballot = Ballot(float(rate), int(theta), float(again), float(further))
    # The node's own accountant: the server's word is not enough.
    plan = certified_plan(settings.mechanism, settings.mechanism.rules(ballot), settings.budget)
    # One ballot for all rounds: two of them, each within the budget, would not be within it together.
    asked = _numbers(ballot)
    before = context.state.get(BALLOT)
    if before is not None and list(before["numbers"]) != asked:
        raise InputError("the server asks for other votes than in an earlier round of this run; nothing is answered.")
    context.state[BALLOT] = ConfigRecord({"numbers": asked})
    return plan


def _numbers(ballot: Ballot) -> list[float]:
    return [ballot.rate, float(ballot.theta), ballot.again, ballot.further]


def begin(context: Context, rounds: int) -> None:
    """Record the round that is answered, and its run. Records of another run are dropped.

    Args:
        context: of the node.
        rounds: number of completed rounds.

    Raises:
        InputError: if this or a later round of this run was answered before; a second answer would draw new votes.
    """
    before, run = context.state.get(ANSWERED), str(context.run_id)
    if before is not None and before["run"] != run:
        # Flower can hand the state of one run on to the next of a series.
        for name in (MEMBER, BALLOT):
            context.state.pop(name, None)
    elif before is not None and rounds <= int(before["rounds"]):
        raise InputError(f"round {rounds + 1} of this run was answered before; a node answers each round once.")
    context.state[ANSWERED] = ConfigRecord({"run": run, "rounds": rounds})


def remember(context: Context, member: Member) -> None:
    """Keep a member until the next stage, as the text of its fields: literals of Python."""
    context.state[MEMBER] = ConfigRecord({"fields": repr(astuple(member))})


def recall(context: Context) -> Member:
    """Return the member of the stage before.

    Raises:
        InputError: if there is none.
    """
    kept = context.state.get(MEMBER)
    if not isinstance(kept, ConfigRecord):
        raise InputError("the server requested a later stage before the first one of the round. Start a new run.")
    return Member(*literal_eval(str(kept["fields"])))


def _corpus_of(context: Context) -> LocalCorpus:
    return _corpus(tuple(sorted((name, str(value)) for name, value in context.node_config.items())))


@lru_cache(maxsize=1)
def _corpus(config: tuple[tuple[str, str], ...]) -> LocalCorpus:
    """Read the node's table, once in a process."""
    from voxpop.engine.local.read import read_here
    from voxpop.reading.wanted import Wanted

    given = dict(config)
    if "source" not in given or "user" not in given:
        raise InputError("the node config must name `source`, a file, and `user`, its column of users.")
    cut: Any = given.get("tokenizer", "words")  # `read` refuses unknown names
    columns: dict[str, Any] = {name: given[name] for name in COLUMNS if name in given}
    return read_here(given["source"], Wanted.of(user=given["user"], tokenizer=cut, **columns))


# ---- The server ----


@server.main()
def serve(grid: Grid, context: Context) -> None:
    """Run every round and save the release."""
    getLogger(LOGGER_NAME).addFilter(_in_one_line)
    settings = settings_of(context.run_config)
    RELEASE.check_target(settings.output)
    _wait_for_nodes(grid, settings)
    plan, trie = with_record(settings.plan, aggregation="secure" if settings.secure else "open"), Trie()
    _, guarantee = plan.begin(settings.seed)
    one_round = secure_round if settings.secure else _open_round
    # A function of the public trie, so the number of rounds reveals nothing more.
    while not is_over(trie, plan.rules):
        trie, complaints = one_round(grid, trie, settings, context.run_id)
        for complaint in complaints:
            log(WARNING, "voxpop: %s", complaint)
        log(INFO, "voxpop: round %s of at most %s done", trie.rounds, plan.rounds)
    grams = [gram_of(word, plan.rules.alphabet) for word in trie.words]
    release = release_of(grams, plan, guarantee)
    release.save(settings.output)
    log(INFO, "voxpop: %s; saved to %s", release, settings.output)


def _in_one_line(record: LogRecord) -> bool:
    """Replace the traceback with which Flower logs an error of voxpop by its message."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, VoxpopError):
        record.msg, record.args, record.exc_info = "voxpop: %s", (" ".join(str(error).split()),), None
    return True


def _open_round(grid: Grid, trie: Trie, settings: Settings, run: int) -> tuple[Trie, list[str]]:
    """Request the sums of every node and add them up; the server sees the sums of each node."""
    nodes = sorted(grid.get_node_ids())
    told = {node: _question(trie, settings) for node in nodes}
    answers = _asked(grid, "votes", told, trie.rounds, settings)
    texts = [(node, answer.get("sums")) for node, answer in answers.items()]
    return federation.next_trie(trie, nodes, texts, settings.plan.rules)


def secure_round(grid: Grid, trie: Trie, settings: Settings, run: int) -> tuple[Trie, list[str]]:
    """Add sums up in secret: the server sees their total only, or nothing where too few nodes stay."""

    def ask(stage: str, told: Mapping[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
        more = {"number": trie.rounds, **(_question(trie, settings) if stage == "masked" else {})}
        return _asked(grid, stage, {node: {**each, **more} for node, each in told.items()}, trie.rounds, settings)

    domain = Domain(trie, settings.plan.rules, settings.symbols)
    collector = Collector(f"{run}/{trie.rounds}", len(domain), ask, domain.digest)
    where = f"round {trie.rounds + 1}"
    try:
        votes: Counter[Any] = domain.votes(collector.total(sorted(grid.get_node_ids())))
    except InputError:
        for complaint in collector.complaints:
            log(WARNING, "voxpop: %s: %s", where, complaint)
        raise
    return grow(trie, votes, settings.plan.rules), [f"{where}: {complaint}" for complaint in collector.complaints]


def _question(trie: Trie, settings: Settings) -> dict[str, Any]:
    """Return the input of a node's vote: the public trie and the ballot."""
    return {"trie": write_trie(trie), "ballot": _numbers(settings.plan.rules.ballot)}


def _asked(
    grid: Grid, stage: str, told: Mapping[int, dict[str, Any]], rounds: int, settings: Settings
) -> dict[int, dict[str, Any]]:
    """Query nodes, and return the first answer of each node that answers in time without an error.

    A message expires with the server's patience. Numbers of nodes are sent as text, because they do not fit the
    numbers of a message.
    """
    messages = []
    for node, content in told.items():
        plain = {name: [str(each) for each in value] if name == "nodes" else value for name, value in content.items()}
        record = RecordDict({"round": ConfigRecord({"stage": stage, **plain})})
        messages.append(Message(record, node, "query", ttl=settings.patience + 1, group_id=str(rounds + 1)))
    answers: dict[int, dict[str, Any]] = {}
    for reply in grid.send_and_receive(messages, timeout=settings.patience):
        node = reply.metadata.src_node_id
        record = None if reply.has_error() else reply.content.get("votes")
        # The first answer counts: a second one does not replace it, and a refusal replaces none.
        if node in told and not answers.get(node):
            answers[node] = _numbered(dict(record)) if isinstance(record, ConfigRecord) and record else {}
    return answers


def _numbered(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer with numbers of nodes as numbers, or nothing where they are not."""
    try:
        return {**answer, "nodes": [int(node) for node in answer.get("nodes", ())]}
    except (TypeError, ValueError):
        return {}


def _wait_for_nodes(grid: Grid, settings: Settings) -> None:
    until = time.monotonic() + settings.patience
    while len(list(grid.get_node_ids())) < settings.nodes:
        if time.monotonic() > until:
            raise InputError(
                f"fewer than {settings.nodes} nodes came within {settings.patience:g} seconds; "
                "start more, or lower `nodes`."
            )
        time.sleep(PAUSE)
