"""The app of the server for heavy hitters over Flower.

The server computes the plan, charges its ledger, waits for nodes, queries them round by round, grows the trie from sums
of votes, and saves the release. At the end it notifies the nodes, which delete their data of the run.
"""

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from logging import INFO, WARNING, LogRecord, getLogger
from typing import TYPE_CHECKING, Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.common.logger import LOGGER_NAME, log
from flwr.serverapp import Grid, ServerApp

from voxpop.errors import InputError, VoxpopError
from voxpop.ledger.ledger import Ledger
from voxpop.mechanisms.heavy_hitters.plan import HittersPlan
from voxpop.mechanisms.heavy_hitters.protocol import Trie, gram_of, grow, is_over
from voxpop.mechanisms.heavy_hitters.releasing import release_of_trie
from voxpop.privacy.planned import with_record
from voxpop.release.release import Release
from voxpop.release.saving import RELEASE
from voxpop_flower import federation
from voxpop_flower.federation import Domain, write_trie
from voxpop_flower.masking import Collector
from voxpop_flower.run import Settings, numbers_of, settings_of

if TYPE_CHECKING:
    from voxpop.ledger.runs import LedgerRun

PAUSE = 0.5
"""The number of seconds between searches for nodes."""
FAREWELL = 15.0
"""The number of seconds to wait until the nodes have deleted their data of the run."""

server = ServerApp()


@server.main()
def serve(grid: Grid, context: Context) -> None:
    """Run every round and save the release."""
    getLogger(LOGGER_NAME).addFilter(_in_one_line)
    settings = settings_of(context.run_config)
    if settings.exclude:
        settings = replace(settings, mechanism=replace(settings.mechanism, exclude=settings.exclude))
    RELEASE.check_target(settings.output)
    plan = with_record(settings.plan, aggregation="secure" if settings.secure else "open")
    run = _ledger_run(settings, context.run_id)
    _wait_for_nodes(grid, settings)
    nodes = sorted(grid.get_node_ids())
    try:
        if run is None:
            release = _release(grid, plan, settings, context.run_id)
            release.save(settings.output)
        else:
            release = _charged(run, grid, plan, settings, context.run_id)
    finally:
        _end(grid, nodes)
    log(INFO, "voxpop: %s; saved to %s", release, settings.output)


def _ledger_run(settings: Settings, run: int) -> "LedgerRun | None":
    """Return the run in the server's ledger, or None without a ledger."""
    if not settings.ledger:
        return None
    return Ledger(settings.ledger).account(settings.dataset).run(f"Flower run {run}", save_to=settings.output)


def _charged(run: "LedgerRun", grid: Grid, plan: HittersPlan, settings: Settings, number: int) -> Release:
    """Charge the ledger of the server, run every round, and save the release in the step that finishes the entry."""
    entry = run.charge(plan.guarantee, str(plan.to_dict()["mechanism"]))
    try:
        release = _release(grid, plan, settings, number).with_ledger_entry(entry.admission)
    except Exception:
        run.fail(entry)
        raise
    run.finish(entry, release)
    return release


def _release(grid: Grid, plan: HittersPlan, settings: Settings, run: int) -> Release:
    """Run every round."""
    trie = Trie()
    _, guarantee = plan.begin(settings.seed)
    one_round = secure_round if settings.secure else _open_round
    # The number of rounds is a function of the public trie, so it reveals nothing else.
    while not is_over(trie, plan.rules):
        trie, complaints = one_round(grid, trie, settings, run)
        for complaint in complaints:
            log(WARNING, "voxpop: %s", complaint)
        log(INFO, "voxpop: round %s of at most %s done", trie.rounds, plan.rounds)
    grams = [gram_of(word, plan.rules.alphabet) for word in trie.words]
    return release_of_trie(grams, plan, guarantee)


def _in_one_line(record: LogRecord) -> bool:
    """Replace the traceback of a voxpop error in Flower's log with the message of the error."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, VoxpopError):
        record.msg, record.args, record.exc_info = "voxpop: %s", (" ".join(str(error).split()),), None
    return True


def _open_round(grid: Grid, trie: Trie, settings: Settings, run: int) -> tuple[Trie, list[str]]:
    """Request the sums of every node and add them. The server receives the sums of each node."""
    nodes = sorted(grid.get_node_ids())
    told = {**_question(trie, settings), **_first(settings), "number": trie.rounds}
    answers = _asked(grid, "votes", dict.fromkeys(nodes, told), trie.rounds, settings)
    texts = [(node, answer.get("sums")) for node, answer in answers.items()]
    return federation.next_trie(trie, nodes, texts, settings.plan.rules)


def secure_round(grid: Grid, trie: Trie, settings: Settings, run: int) -> tuple[Trie, list[str]]:
    """Add sums with secure aggregation, so that the server receives only their total.

    If too few nodes remain, the server receives nothing.
    """
    of_stage = {"masked": _question(trie, settings), "keys": _first(settings)}

    def ask(stage: str, told: Mapping[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
        more = {"number": trie.rounds, **of_stage.get(stage, {})}
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
    """Return the input of a node's vote, which is the public trie and the ballot."""
    return {"trie": write_trie(trie), "ballot": numbers_of(settings.plan.rules.ballot)}


def _first(settings: Settings) -> dict[str, Any]:
    """Return the input of a round's first stage. A new node fixes the words of its users in this stage."""
    words = json.dumps(settings.mechanism.excluded.words)
    return {"exclude": words, "ballot": numbers_of(settings.plan.rules.ballot)}


def _asked(
    grid: Grid, stage: str, told: Mapping[int, dict[str, Any]], rounds: int, settings: Settings
) -> dict[int, dict[str, Any]]:
    """Query nodes, and return the first answer of each node that answers in time without an error.

    A message expires after the patience of the server. The ids of nodes are sent as text, because they can exceed the
    range of integers in a message.
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
        # Only the first answer counts, so a second answer or an error does not replace it.
        if node in told and not answers.get(node):
            answers[node] = _numbered(dict(record)) if isinstance(record, ConfigRecord) and record else {}
    return answers


def _numbered(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer with the ids of nodes as integers, or an empty answer if they are not integers."""
    try:
        return {**answer, "nodes": [int(node) for node in answer.get("nodes", ())]}
    except (TypeError, ValueError):
        return {}


def _end(grid: Grid, nodes: list[int]) -> None:
    """Notify the nodes that the run is over. Without this message, a node deletes its folder after `keep-hours`."""
    record = RecordDict({"round": ConfigRecord({"stage": "over"})})
    messages = [Message(record, node, "query", ttl=FAREWELL + 1, group_id="over") for node in nodes]
    try:
        grid.send_and_receive(messages, timeout=FAREWELL)
    except Exception as error:
        log(WARNING, "voxpop: the nodes were not notified that the run is over (%s)", type(error).__name__)


def _wait_for_nodes(grid: Grid, settings: Settings) -> None:
    until = time.monotonic() + settings.patience
    while len(list(grid.get_node_ids())) < settings.nodes:
        if time.monotonic() > until:
            raise InputError(
                f"fewer than {settings.nodes} nodes connected within {settings.patience:g} seconds; "
                "start more, or lower `nodes`."
            )
        time.sleep(PAUSE)
