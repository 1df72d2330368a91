"""The server: waits for nodes, queries them round by round, grows the trie from sums of votes, saves the release."""

import time
from collections import Counter
from collections.abc import Mapping
from logging import INFO, WARNING
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid, ServerApp

from voxpop.errors import InputError
from voxpop.mechanisms.heavy_hitters.federation import Domain, Sums, canonical, gram_of, next_trie, write_trie
from voxpop.mechanisms.heavy_hitters.flower.settings import Settings, settings_of
from voxpop.mechanisms.heavy_hitters.masking import Collector
from voxpop.mechanisms.heavy_hitters.plan import Aggregation
from voxpop.mechanisms.heavy_hitters.protocol import Prefix, Trie, grow, is_over
from voxpop.mechanisms.heavy_hitters.releasing import release_of
from voxpop.privacy.planned import with_record
from voxpop.release.saving import check_target

PAUSE = 0.5

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run every round and save the release."""
    settings = settings_of(context.run_config)
    check_target(settings.output)
    _wait_for_nodes(grid, settings)
    added: Aggregation = "secure" if settings.secure else "open"
    plan, trie = with_record(settings.plan, aggregation=added), Trie()
    guarantee = plan.guaranteed(private=settings.seed is None)
    one_round = _secure_round if settings.secure else _open_round
    # A function of the public trie, so the number of rounds reveals nothing more.
    while not is_over(trie, plan.rules):
        trie, complaints = one_round(grid, trie, settings, context.run_id)
        for complaint in complaints:
            log(WARNING, "voxpop: %s", complaint)
        log(INFO, "voxpop: round %s of at most %s done", trie.rounds, plan.rounds)
    alphabet = plan.mechanism.alphabet
    grams = canonical([gram_of(word, alphabet) for word in trie.words])
    release = release_of(grams, plan, guarantee)
    release.save(settings.output)
    log(INFO, "voxpop: %s; saved to %s", release, settings.output)


def _open_round(grid: Grid, trie: Trie, settings: Settings, run: int) -> tuple[Trie, list[str]]:
    """Request the sums of every node and add them up; the server sees the sums of each node."""
    nodes = sorted(grid.get_node_ids())
    told = {node: _question(trie, settings) for node in nodes}
    answers = _asked(grid, "votes", told, trie.rounds, settings)
    texts = [(node, answer.get("sums")) for node, answer in answers.items()]
    return next_trie(trie, nodes, texts, settings.plan.rules)


def _secure_round(grid: Grid, trie: Trie, settings: Settings, run: int) -> tuple[Trie, list[str]]:
    """Add sums up in secret, part by part: the server sees totals only, or nothing where too few nodes stay."""
    domain, votes = Domain(trie, settings.plan.rules, settings.symbols), Counter[Prefix]()
    complaints: list[str] = []
    for part in range(domain.parts):
        votes += domain.votes(_total(grid, trie, domain, part, settings, run, complaints), part)
    return grow(trie, votes, settings.plan.rules), complaints


def _total(
    grid: Grid, trie: Trie, domain: Domain, part: int, settings: Settings, run: int, complaints: list[str]
) -> Sums:
    """Return the total of one part of a round, and add to the complaints."""

    def ask(stage: str, told: Mapping[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
        more = {"number": trie.rounds, "part": part, **(_question(trie, settings) if stage == "masked" else {})}
        content = {node: {**_plain(each), **more} for node, each in told.items()}
        return {node: _numbered(answer) for node, answer in _asked(grid, stage, content, trie.rounds, settings).items()}

    collector = Collector(f"{run}/{trie.rounds}/{part}", domain.length(part), ask, domain.digest)
    where = f"round {trie.rounds + 1}" + (f", part {part + 1} of {domain.parts}" if domain.parts > 1 else "")
    try:
        return collector.total(sorted(grid.get_node_ids()))
    except InputError:
        for complaint in collector.complaints:
            log(WARNING, "voxpop: %s: %s", where, complaint)
        raise
    finally:
        complaints += [f"{where}: {complaint}" for complaint in collector.complaints]


def _question(trie: Trie, settings: Settings) -> dict[str, Any]:
    """Return the input of a node's vote: the public trie and the ballot."""
    ballot = settings.plan.rules.ballot
    return {"trie": write_trie(trie), "ballot": [ballot.rate, float(ballot.theta), ballot.again, ballot.further]}


def _asked(
    grid: Grid, stage: str, told: Mapping[int, dict[str, Any]], rounds: int, settings: Settings
) -> dict[int, dict[str, Any]]:
    """Query nodes, and return the first answer of each node that answers in time without an error.

    A message expires with the server's patience.
    """
    messages = [
        Message(
            RecordDict({"round": ConfigRecord({"stage": stage, **content})}),
            node,
            "query",
            ttl=settings.patience + 1,
            group_id=str(rounds + 1),
        )
        for node, content in told.items()
    ]
    answers: dict[int, dict[str, Any]] = {}
    for reply in grid.send_and_receive(messages, timeout=settings.patience):
        node = reply.metadata.src_node_id
        record = None if reply.has_error() else reply.content.get("votes")
        # The first answer counts: a second one does not replace it, and a refusal replaces none.
        if node in told and not answers.get(node):
            answers[node] = dict(record) if isinstance(record, ConfigRecord) else {}
    return answers


def _plain(told: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers of nodes as text: they do not fit the numbers of a message."""
    return {name: [str(node) for node in value] if name == "nodes" else value for name, value in told.items()}


def _numbered(answer: dict[str, Any]) -> dict[str, Any]:
    try:
        # Of a node that refused or failed nothing came, and nothing is made of it.
        return {**answer, "nodes": [int(node) for node in answer.get("nodes", ())]} if answer else {}
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
