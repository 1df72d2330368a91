"""The server: waits for nodes, asks them round by round, grows the trie from sums of votes, saves the release."""

import time
from logging import INFO, WARNING

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid, ServerApp

from voxpop.errors import InputError
from voxpop.hitters.federation import next_trie
from voxpop.hitters.flower.settings import Settings, settings_of
from voxpop.hitters.node import canonical, gram_of
from voxpop.hitters.releasing import release_of
from voxpop.hitters.server import is_over
from voxpop.hitters.trie import Trie
from voxpop.hitters.wire import write_trie
from voxpop.release.saving import check_target

PAUSE = 0.5
SEEN = "the server saw each node's sums of sampled votes before the threshold"
"""What the record of a run says beside its guarantee."""

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run every round and save what was found."""
    settings = settings_of(context.run_config)
    check_target(settings.output)
    _wait_for_nodes(grid, settings)
    plan, trie = settings.plan, Trie()
    while not is_over(trie, plan.rules):
        nodes = sorted(grid.get_node_ids())
        messages = [_question(node, trie, settings) for node in nodes]
        replies = list(grid.send_and_receive(messages, timeout=settings.patience))
        answers = [(reply.metadata.src_node_id, _sums(reply)) for reply in replies]
        trie, complaints = next_trie(trie, nodes, answers, plan.rules)
        for complaint in complaints:
            log(WARNING, "voxpop: %s", complaint)
        log(INFO, "voxpop: round %s of at most %s done", trie.rounds, plan.rounds)
    alphabet = plan.mechanism.alphabet
    grams = canonical([gram_of(word, alphabet) for word in trie.words])
    release = release_of(grams, plan, private=settings.seed is None, seen=SEEN)
    release.save(settings.output)
    log(INFO, "voxpop: %s; saved to %s", release, settings.output)


def _question(node: int, trie: Trie, settings: Settings) -> Message:
    """The public trie, to one node; it expires with the server's patience."""
    content = RecordDict({"round": ConfigRecord({"trie": write_trie(trie)})})
    return Message(content, node, "query", ttl=settings.patience + 1, group_id=str(trie.rounds + 1))


def _sums(reply: Message) -> object:
    """What a node said, or None if it failed or said something else."""
    if reply.has_error():
        return None
    try:
        return reply.content["votes"]["sums"]
    except (KeyError, TypeError, IndexError):
        return None


def _wait_for_nodes(grid: Grid, settings: Settings) -> None:
    until = time.monotonic() + settings.patience
    while len(list(grid.get_node_ids())) < settings.nodes:
        if time.monotonic() > until:
            raise InputError(
                f"fewer than {settings.nodes} nodes came within {settings.patience:g} seconds; "
                "start more, or lower `nodes`."
            )
        time.sleep(PAUSE)
