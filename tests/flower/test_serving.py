"""Tests of the server, with nodes in the same process, including the ledger, public words, and the end of a run."""

import json
from pathlib import Path

import polars as pl
import pytest

import voxpop as vp

pytest.importorskip("flwr", reason="flwr is not installed: pip install voxpop-flower")

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from voxpop.errors import BudgetError, InputError, LedgerError
from voxpop_flower import client
from voxpop_flower.serving import serve

NODES = 4
RUN = 11
CONFIG = {"epsilon": 1.0, "delta": 1e-6, "max-length": 5, "unit": 1, "patience": 5.0}


class Grid:
    """A connection to nodes in this process. Between messages, only the Flower context of a node remains in memory.

    Attributes:
        config: The run config that nodes receive with each message.
        lost: The stages in which each node is lost.
        repeats: Whether each message arrives twice. In this case, the answer to the second message is processed first.
    """

    def __init__(self, folder: Path, config: dict, run: int = RUN, **bounds):
        self.folder, self.config, self.run, self.asked = folder, config, run, []
        self.lost: dict[int, set[str]] = {}
        self.repeats = False
        self.records = {number: RecordDict() for number in range(1, NODES + 1)}
        self.own = {}
        for number in self.records:
            state, path = folder / f"state{number}", folder / f"node{number}.parquet"
            state.mkdir(exist_ok=True)
            words = ["sun", "sun", "moon", f"own{number}"]
            table = pl.DataFrame({"who": [*range(400), *range(400)], "what": [*words * 100, *["star"] * 400]})
            table.with_columns(pl.col("who") + 1000 * number).write_parquet(path)
            given = {"state": str(state), "total-epsilon": 4.0, "total-delta": 1e-4, **bounds}
            self.own[number] = {"source": str(path), "user": "who", "items": "what", **given}
        TaskIdentity._run_id, TaskIdentity._node_id, TaskIdentity._task_id = run, 0, 1

    def get_node_ids(self):
        return list(self.own)

    def send_and_receive(self, messages, *, timeout):
        answers = []
        for message in messages:
            node, stage = message.metadata.dst_node_id, message.content["round"]["stage"]
            self.asked.append(stage)
            if stage not in self.lost.get(node, ()):
                context = Context(self.run, node, self.own[node], self.records[node], self.config)
                answers.append(client(message, context))
                if self.repeats:
                    answers.insert(0, client(message, context))
        return answers

    def serve(self):
        serve(self, Context(self.run, 0, {}, RecordDict(), self.config))

    def folders(self):
        return [each for state in self.folder.glob("state*") for each in state.glob("runs/*")]


@pytest.fixture
def config(tmp_path):
    return {**CONFIG, "output": str(tmp_path / "found")}


def test_a_run_releases_the_words_and_ends_on_every_node(tmp_path, config):
    """Masked sums find the common words. Afterwards, no node has a folder of the run, and each ledger has one entry."""
    grid = Grid(tmp_path, config)
    grid.serve()
    release = vp.load(tmp_path / "found")
    assert set(release) <= {"sun", "moon", "star"}
    assert len(release) > 0
    assert release.guarantee.private
    assert grid.folders() == []
    assert grid.asked[-NODES:] == ["over"] * NODES
    for number in grid.own:
        [entry] = vp.Ledger(tmp_path / f"state{number}" / "ledger.json").account("node").entries
        assert (entry.state, entry.guarantee.epsilon, entry.guarantee.delta) == ("finished", 1.0, 1e-6)


def test_repeated_messages_do_not_end_a_round(tmp_path, config):
    """The node rejects the second message of a stage, and continues with the first."""
    grid = Grid(tmp_path, config)
    grid.repeats = True
    grid.serve()
    assert "star" in vp.load(tmp_path / "found").to_list() or "sun" in vp.load(tmp_path / "found").to_list()
    refused = [json.loads(line) for line in (tmp_path / "state1" / "answers.log").read_text().splitlines()]
    assert sum("refused" in line for line in refused) == 4 * 5


def test_public_words_are_sent_to_the_nodes_and_recorded(tmp_path, config):
    """No node votes for a listed word, so the release contains only another word. The plan records the list."""
    (tmp_path / "words.txt").write_text("sun\nstar\n")
    Grid(tmp_path, {**config, "exclude": str(tmp_path / "words.txt")}).serve()
    release = vp.load(tmp_path / "found")
    assert release.to_list() == ["moon"]
    record = vp.HeavyHitters(5, unit=1, exclude=["sun", "star"]).plan(vp.Budget(1, 1e-6)).to_dict()["exclude"]
    assert release.plan.to_dict()["exclude"] == record


def test_the_server_charges_its_ledger_before_the_first_message(tmp_path, config):
    """After the release, the ledger entry is finished. A run beyond the budget sends nothing to the nodes."""
    ledger = vp.Ledger(tmp_path / "team.ledger")
    account = ledger.open("words", vp.Budget(1.5, 1e-4), create=True)
    given = {"ledger": str(tmp_path / "team.ledger"), "dataset": "words"}
    Grid(tmp_path, {**config, **given}).serve()
    [entry] = account.entries
    assert (entry.state, entry.label) == ("finished", f"Flower run {RUN}")
    assert vp.load(tmp_path / "found").metadata.ledger == entry.admission
    again = Grid(tmp_path, {**config, **given, "output": str(tmp_path / "more")}, run=12)
    with pytest.raises(BudgetError):
        again.serve()
    assert "votes" not in again.asked
    assert "keys" not in again.asked
    assert len(account.entries) == 1


def test_a_run_that_fails_is_charged_and_ends_on_every_node(tmp_path, config):
    """If two of four nodes are lost, nothing is released, and the remaining nodes delete their folders."""
    account = vp.Ledger(tmp_path / "team.ledger").open("words", vp.Budget(3, 1e-4), create=True)
    grid = Grid(tmp_path, {**config, "ledger": str(tmp_path / "team.ledger"), "dataset": "words"})
    grid.lost = {1: {"masked", "over"}, 2: {"masked"}}
    with pytest.raises(InputError, match="nothing is released"):
        grid.serve()
    assert [entry.state for entry in account.entries] == ["failed"]
    assert not (tmp_path / "found").exists()
    assert [folder.parent.parent.name for folder in grid.folders()] == ["state1"]


@pytest.mark.parametrize(
    ("given", "error"),
    [({"seed": 3, "ledger": "team.ledger", "dataset": "words"}, InputError), ({"ledger": "missing.json"}, LedgerError)],
)
def test_a_ledger_that_rejects_the_charge_prevents_the_run(tmp_path, config, given, error):
    """A seeded run cannot be charged, and a ledger must be created in advance."""
    grid = Grid(tmp_path, {**config, **given, **{"ledger": str(tmp_path / given["ledger"])}})
    with pytest.raises(error):
        grid.serve()
    assert grid.asked == []


def test_the_log_names_the_nodes_that_reject_open_sums(tmp_path, config, caplog):
    """By default, nodes send only masked sums.

    The server's log contains the numbers of the nodes that reject open sums, and one constant reason.
    """
    grid = Grid(tmp_path, {**config, "secure": False})
    grid.own[1]["secure"] = grid.own[2]["secure"] = grid.own[3]["secure"] = False
    caplog.set_level("INFO", logger="flwr")
    grid.serve()
    assert "round 1: node 4 refused or failed; the round continues without it" in caplog.text
    found = set(vp.load(tmp_path / "found"))
    assert "own1" in found
    assert "own4" not in found


def test_a_message_without_its_list_of_public_words_is_rejected(tmp_path, config):
    """A missing list of public words is rejected, and not treated as an empty list."""
    grid = Grid(tmp_path, config)
    record = RecordDict({"round": ConfigRecord({"stage": "keys", "number": 0, "ballot": [0.5, 9.0, 0.0, 0.0]})})
    [reply] = grid.send_and_receive([Message(record, 1, "query", group_id="1")], timeout=1)
    assert dict(reply.content["votes"]) == {}
    assert "refused" in json.loads((tmp_path / "state1" / "answers.log").read_text())
