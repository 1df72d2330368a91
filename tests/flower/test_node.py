"""Tests of one node, with an app that receives messages and a context as from Flower."""

import json
import os
import shutil
import stat
import threading
import time
from pathlib import Path

import polars as pl
import pytest

import voxpop as vp

pytest.importorskip("flwr", reason="flwr is not installed: pip install voxpop-flower")

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from voxpop.engine.local.corpus import LocalCorpus
from voxpop.errors import InputError
from voxpop.mechanisms.heavy_hitters.protocol import Prefix, Trie
from voxpop_flower import client, client_of
from voxpop_flower.federation import read_votes, write_trie
from voxpop_flower.own import NodeSettings
from voxpop_flower.run import numbers_of, settings_of

CONFIG = {"epsilon": 1.0, "delta": 1e-8, "max-length": 10, "secure": False}
PLANTED = "quokka"
"""A word that must never leave the node except as the prefix of a vote."""


def plan_of(**config):
    return settings_of({**CONFIG, **config}).plan


BALLOT = numbers_of(plan_of().rules.ballot)
RULES = plan_of().rules
ROOT = Trie()
SUN, MOON = (Prefix(tuple(word)) for word in ("suns", "moon"))
SECOND = Trie((frozenset({SUN, MOON}),))
THIRD = SECOND.grown(frozenset({Prefix(tuple("sunshi")), Prefix(tuple("moonli"))}))


class Node:
    """A node with a table of 200 users, together with methods that send messages as the server does."""

    def __init__(self, folder: Path, app=client, **config):
        self.folder, self.app, self.state = folder, app, folder / "state"
        self.state.mkdir()
        bounds = {"state": str(self.state), "total-epsilon": 4.0, "total-delta": 1e-6, "secure": False}
        table = {"source": str(folder / "table.csv"), "user": "who", "items": "what"}
        self.config = {**table, **bounds, **config}
        self.records = RecordDict()
        self.write("sunshine")

    def write(self, word: str) -> None:
        rows = "".join(f"{user},{word}\n" for user in range(200))
        (self.folder / "table.csv").write_text(f"who,what\n{rows}")

    def send(self, record: dict, run: int = 1, **config) -> Message:
        """Send a message, and return the reply that Flower sends to the server."""
        # Flower sets these values in the process that it starts for a message.
        TaskIdentity._run_id, TaskIdentity._node_id, TaskIdentity._task_id = run, 7, 1
        message = Message(RecordDict({"round": ConfigRecord(record)}), 7, "query", group_id="1")
        return self.app(message, Context(run, 7, self.config, self.records, {**CONFIG, **config}))

    def ask(self, trie: Trie = ROOT, run: int = 1, ballot=BALLOT, exclude=(), number=None, **config):
        """Return the votes for a round with open sums, or None if the node does not answer."""
        told = {"trie": write_trie(trie), "ballot": ballot, "exclude": json.dumps(list(exclude))}
        number = trie.rounds if number is None else number
        reply = self.send({"stage": "votes", "number": number, **told}, run, **config)
        return self.read(reply, trie)

    def read(self, reply: Message, trie: Trie):
        assert not reply.has_error()
        assert list(reply.content) == ["votes"]
        answer = dict(reply.content["votes"])
        assert answer == {} or list(answer) == ["sums"]
        return read_votes(answer["sums"], trie, RULES) if answer else None

    @property
    def log(self) -> list[dict]:
        return [json.loads(line) for line in (self.state / "answers.log").read_text().splitlines()]

    @property
    def refusal(self) -> str:
        return self.log[-1]["refused"]

    @property
    def entries(self):
        return vp.Ledger(self.state / "ledger.json").account("node").entries


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


# ---- Values that the first round of a run fixes ----


def test_votes_follow_the_words_of_the_first_round_even_if_the_table_changes(node):
    """The proof assumes one word per user in all rounds, so later rounds read only the words that round 1 saved."""
    assert set(node.ask()) == {SUN}
    node.write("moonlight")
    assert set(node.ask(SECOND)) == {Prefix(tuple("sunshi"))}
    (node.folder / "table.csv").unlink()
    assert set(node.ask(THIRD)) == {Prefix(tuple("sunshine"))}
    assert set(node.ask(run=2) or ()) == set()
    node.write("moonlight")
    assert set(node.ask(run=3)) == {MOON}


def test_concurrent_runs_have_separate_words(node):
    """The messages of two runs alternate, and each run keeps the words of its first round."""
    assert set(node.ask(run=1)) == {SUN}
    node.write("moonlight")
    assert set(node.ask(run=2)) == {MOON}
    node.write("starlight")
    assert set(node.ask(SECOND, run=1)) == {Prefix(tuple("sunshi"))}
    assert set(node.ask(SECOND, run=2)) == {Prefix(tuple("moonli"))}


def test_only_the_owner_can_read_the_folder_of_a_run(node):
    """Folders have mode 0700 and files 0600 for any umask. The folder contains one word per user."""
    before = os.umask(0)
    try:
        node.ask()
    finally:
        os.umask(before)
    run = node.state / "runs" / "1"
    for path in (node.state / "runs", run, *run.rglob("*")):
        assert stat.S_IMODE(path.lstat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    for name in ("answers.log", "ledger.json"):
        assert stat.S_IMODE((node.state / name).stat().st_mode) == 0o600
    (node.state / "runs").chmod(0o750)
    assert node.ask(SECOND) is None
    assert "must be a folder that only the user of this node can read" in node.refusal


def test_a_folder_of_runs_that_is_a_symbolic_link_is_rejected(node):
    """A folder of runs that is a symbolic link is not used."""
    elsewhere = node.folder / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (node.state / "runs").symlink_to(elsewhere)
    assert node.ask() is None


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


FILES = ["tokens.npy", "user_start.npy", "user_key.npy", "vocabulary.arrow", "corpus.json"]


@pytest.mark.parametrize(
    ("name", "change"),
    [(f"electorate/{name}", change) for name in FILES for change in (damaged, Path.unlink)]
    + [("run.json", damaged), ("run.json", Path.unlink), ("electorate", shutil.rmtree), ("", shutil.rmtree)],
)
def test_a_node_with_lost_or_damaged_files_stops_answering(node, name, change):
    """The node answers no further message of the run, whether or not its table changed."""
    node.ask()
    change(node.state / "runs" / "1" / name)
    said = []
    for trie, word in ((SECOND, "sunshine"), (THIRD, "moonlight")):
        node.write(word)
        assert node.ask(trie) is None
        said.append(node.refusal)
    assert len(set(said)) == 1
    assert "lost" in said[0]


def test_one_of_several_simultaneous_messages_is_answered(node):
    """Ten messages for the same round arrive at the same time, and one of them is answered."""
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(node.ask())) for _ in range(10)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(answers) == 10
    assert sum(answer is not None for answer in answers) == 1
    assert node.ask() is None
    assert node.ask(SECOND) is not None
    assert node.ask(SECOND) is None
    assert node.ask() is None


class Killed(BaseException):
    """An exception that, like a kill, ends a handler without running any later code."""


@pytest.mark.parametrize("step", range(12))
def test_a_node_that_is_killed_at_any_step_never_votes_for_another_word(node, monkeypatch, step):
    """After a kill at any replacement of a file, later rounds use the words of the first saved table or no words."""
    real, count = os.replace, iter(range(1000))

    def replace(*given, **named):
        if next(count) == step:
            raise Killed
        return real(*given, **named)

    monkeypatch.setattr(os, "replace", replace)
    heard = []
    for trie, word in ((Trie(), "sunshine"), (SECOND, "moonlight"), (THIRD, "starlight")):
        node.write(word)
        try:
            votes = node.ask(trie)
        except Killed:
            votes = None
        heard += ["".join(prefix.symbols)[:4] for prefix in votes or ()]
    assert len(set(heard)) <= 1


def test_a_node_that_was_killed_while_it_saved_reads_the_table_of_its_first_answer(node, monkeypatch):
    """If the first save is interrupted, the node has not answered, so a later round can fix the words."""
    real = LocalCorpus.save

    def save(self, folder):
        real(self, folder)
        raise Killed

    monkeypatch.setattr(LocalCorpus, "save", save)
    with pytest.raises(Killed):
        node.ask()
    monkeypatch.setattr(LocalCorpus, "save", real)
    node.write("moonlight")
    assert set(node.ask(SECOND)) == {Prefix(tuple("moonli"))}
    node.write("sunshine")
    assert set(node.ask(THIRD)) == {Prefix(tuple("moonligh"))}


# ---- When the folder is deleted ----


def test_the_folder_is_deleted_with_the_last_round_and_no_round_is_answered_again(node):
    """After the last round, only the entry in the ledger remains."""
    config = {"max-length": 4}
    ballot = numbers_of(plan_of(**config).rules.ballot)
    assert node.ask(ballot=ballot, **config) is not None
    assert list((node.state / "runs").iterdir()) == []
    assert [entry.state for entry in node.entries] == ["finished"]
    assert node.ask(ballot=ballot, **config) is None
    assert "deleted" in node.refusal


def test_a_node_responds_once_to_a_run_with_a_seed(tmp_path):
    """No ledger lists the run, so the node keeps a record of its answers. The record contains no words."""
    node = Node(tmp_path, **{"allow-seed": True})
    config = {"max-length": 4, "seed": 5}
    ballot = numbers_of(plan_of(**config).rules.ballot)
    assert node.ask(ballot=ballot, **config) is not None
    assert [path.name for path in (node.state / "runs" / "1").iterdir()] == ["run.json"]
    assert node.ask(ballot=ballot, **config) is None
    assert "answered before" in node.refusal


def test_a_node_answers_no_message_after_the_server_ends_the_run(node):
    """If a run stops early, the server sends a last message.

    After this message, the node answers no message of the run.
    """
    node.ask()
    assert dict(node.send({"stage": "over"}).content["votes"]) == {}
    assert list((node.state / "runs").iterdir()) == []
    assert node.ask(SECOND) is None
    assert len(node.entries) == 1


def test_the_expired_folder_of_a_run_is_deleted(tmp_path, monkeypatch):
    """When the next message of any run arrives, the node deletes expired folders, including damaged folders."""
    node = Node(tmp_path, **{"keep-hours": 2})
    node.ask(run=1)
    node.ask(run=2)
    (node.state / "runs" / "2" / "run.json").write_text("{")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    node.ask(run=3)
    assert {each.name for each in (node.state / "runs").iterdir()} == {"1", "2", "3"}
    monkeypatch.setattr(time, "time", lambda: now + 2.5 * 3600)
    assert node.ask(SECOND, run=3) is not None
    assert {each.name for each in (node.state / "runs").iterdir()} == {"3"}
    assert node.ask(SECOND, run=1) is None


# ---- Forged configurations ----

FORGED = {
    "epsilon": {"epsilon": 1.5},
    "delta": {"delta": 1e-7},
    "more rounds": {"max-length": 12},
    "alphabet": {"alphabet": "bytes"},
    "unit": {"unit": 1},
    "seed": {"seed": 3},
    "secure": {"secure": True},
}


@pytest.mark.parametrize("name", FORGED)
def test_another_run_config_is_rejected_after_the_first_round(tmp_path, name):
    """The node rejects a message with another run config, and still answers messages with the first run config."""
    node = Node(tmp_path, **{"allow-seed": True})
    assert node.ask() is not None
    assert node.ask(SECOND, **FORGED[name]) is None
    assert node.ask(SECOND) is not None


def test_another_ballot_list_or_trie_is_rejected_after_the_first_round(node):
    """The cases are another ballot, other exclusions, and a lost prefix that reappears."""
    half = [BALLOT[0] / 2, *BALLOT[1:]]
    assert node.ask() is not None
    lost = SECOND.grown(frozenset({Prefix(tuple("moonli"))}))
    for trie, more in [
        (SECOND, {"ballot": half}),
        (SECOND, {"exclude": ["sunshine"]}),
    ]:
        assert node.ask(trie, **more) is None
    # The node still answers the third round after it rejected these messages.
    assert node.ask(lost) is not None
    again = THIRD.grown(frozenset({Prefix(tuple("sunshine"))}))
    assert node.ask(again) is None
    assert "does not continue" in node.refusal


@pytest.mark.parametrize(
    "trie",
    [
        SECOND.grown(frozenset({Prefix(tuple("starli"))})),
        Trie((frozenset({Prefix(tuple("su"))}),)),
        Trie((frozenset({SUN}),) * 9),
        Trie((frozenset(), frozenset({Prefix(tuple("sunshi"))}))),
    ],
)
def test_an_impossible_trie_is_rejected(node, trie):
    """Each prefix must extend a live prefix by the symbols of one round, and the plan must have enough rounds."""
    assert node.ask(trie) is None
    assert "does not continue" in node.refusal


@pytest.mark.parametrize("number", [-1, 1, 2**70, "x"])
def test_a_round_number_that_does_not_match_the_trie_is_rejected(node, number):
    """A message is rejected if its round differs from the number of rounds in its trie."""
    assert node.ask(number=number) is None


def test_votes_beyond_the_budget_are_rejected(node):
    """The node computes the delta of the requested votes, and rejects the request if this delta exceeds the budget."""
    assert node.ask(ballot=[0.99, 2.0, 0.5, 0.5]) is None
    assert "cost a delta" in node.refusal


@pytest.mark.parametrize("stage", ["masked", "shares", "unmasking"])
def test_a_later_stage_without_the_first_is_rejected(node, stage):
    """A message of a later stage is rejected, because a run begins with the first stage of a round."""
    reply = node.send({"stage": stage, "number": 0, "nodes": ["7"], "letters": [b""]}, secure=True)
    assert dict(reply.content["votes"]) == {}


# ---- The node's own bounds ----


def test_seeds_are_rejected_unless_the_node_allows_them(tmp_path):
    """A person who starts a seeded run can compute which users are sampled.

    No budget covers such a run, so it is not charged.
    """
    node = Node(tmp_path)
    assert node.ask(seed=5) is None
    assert "has a seed" in node.refusal
    assert not (node.state / "ledger.json").exists()
    node.config["allow-seed"] = True
    assert node.ask(run=1, seed=5) == node.ask(run=2, seed=5) is not None
    assert node.entries == []


def test_open_sums_are_rejected_unless_the_node_allows_them(tmp_path):
    """By default, a node sends only masked sums."""
    node = Node(tmp_path)
    del node.config["secure"]
    assert node.ask() is None
    assert "sends only masked sums" in node.refusal


def test_a_run_beyond_a_bound_of_the_node_is_rejected(tmp_path):
    """The node rejects a run beyond `max-epsilon` or `max-delta`, and also a run that would exceed the total."""
    node = Node(tmp_path, **{"max-epsilon": 1.5, "max-delta": 1e-7, "total-epsilon": 2.5, "total-delta": 1e-6})
    for more in ({"epsilon": 20.0}, {"epsilon": 1.6}, {"delta": 1e-6}, {"epsilon": float("nan")}):
        assert node.ask(**more) is None
    assert node.entries == [] if (node.state / "ledger.json").exists() else True
    assert [node.ask(run=run) is not None for run in (1, 2, 3, 4)] == [True, True, False, False]
    assert "Not enough budget left" in node.refusal
    assert [entry.label for entry in node.entries] == ["run 1", "run 2"]


def test_a_node_stops_participating_if_its_ledger_is_lost(node):
    """The total spent by a node never restarts at zero, and the limit on it cannot be increased."""
    node.ask()
    node.config["total-epsilon"] = 100.0
    assert node.ask(run=2) is None
    node.config["total-epsilon"] = 4.0
    (node.state / "ledger.json").unlink()
    assert node.ask(run=3) is None
    assert "existed" in node.refusal


def test_the_log_lists_the_answers(node):
    """Each line of the log contains the time, run, round, stage, budget and result."""
    node.ask()
    node.ask(SECOND, epsilon=9.0)
    first, second = node.log
    assert {name: first[name] for name in ("run", "stage", "number", "epsilon", "delta", "seed", "answered")} == {
        "run": "1",
        "stage": "votes",
        "number": "0",
        "epsilon": 1.0,
        "delta": 1e-8,
        "seed": False,
        "answered": True,
    }
    assert "refused" in second


def test_a_node_stops_participating_if_its_log_cannot_be_written(node):
    """An answer that is not logged is not sent."""
    (node.state / "answers.log").mkdir()
    assert node.ask() is None


@pytest.mark.parametrize(
    "change",
    [
        {"state": None},
        {"total-epsilon": None},
        {"total-delta": None},
        {"state": "missing"},
        {"max-epsilon": "1"},
        {"max-delta": True},
        {"secure": "false"},
        {"allow-seed": 1},
        {"keep-hours": 0},
        {"total-epsilon": float("inf")},
    ],
)
def test_a_node_with_missing_or_invalid_settings_answers_nothing(node, change):
    """The folder and the total have no defaults, and values of other types are errors."""
    [(name, value)] = change.items()
    if value is None:
        del node.config[name]
    else:
        node.config[name] = value
    with pytest.raises(InputError):
        NodeSettings.of(node.config)
    assert node.ask() is None


# ---- Data that leaves the node ----


def tables(folder: Path) -> dict[str, str]:
    """Return tables by name. These tables cannot be read, and their errors could quote a planted word."""
    (folder / f"{PLANTED}.csv").write_text(f"who,what\n{PLANTED},tea\n,milk\n")
    (folder / "long.csv").write_text(f"who,what\n1,2,{PLANTED}\n")
    (folder / "bytes.csv").write_bytes(b"who,what\n1,\xff" + PLANTED.encode())
    pl.DataFrame({"who": [PLANTED], "what": [1.5]}).write_parquet(folder / "types.parquet")
    (folder / "broken.parquet").write_bytes(PLANTED.encode())
    return {
        name: str(folder / name)
        for name in (f"{PLANTED}.csv", "long.csv", "bytes.csv", "types.parquet", "broken.parquet", f"no-{PLANTED}.csv")
    }


@pytest.mark.parametrize("name", [f"{PLANTED}.csv", "long.csv", "bytes.csv", "types.parquet", "broken.parquet", "no"])
def test_no_text_of_an_exception_is_sent_to_the_server(node, name, capfd):
    """Every failure has the same reply, byte for byte. The node's terminal shows no contents of the table."""
    there = tables(node.folder)
    node.config["source"] = there.get(name, there[f"no-{PLANTED}.csv"])
    reply = node.send({"stage": "votes", "number": 0, "trie": "[]", "ballot": BALLOT, "exclude": "[]"})
    other = node.send({"stage": PLANTED, "number": PLANTED}, run=2)
    assert not reply.has_error()
    assert reply.content == other.content == RecordDict({"votes": ConfigRecord()})
    assert PLANTED not in "".join(capfd.readouterr())
    assert len(node.log) == 2


@pytest.mark.parametrize("error", [RuntimeError(PLANTED), SystemExit(PLANTED), MemoryError(PLANTED), RecursionError])
def test_no_text_of_an_exception_of_a_loader_is_sent_to_the_server(tmp_path, error, capfd):
    """The loader is code of the node's organisation, so its exceptions are logged only on the node."""

    def load(context):
        raise error

    node = Node(tmp_path, client_of(load))
    assert node.ask() is None
    assert PLANTED not in "".join(capfd.readouterr())
    assert "refused" in node.log[-1]


def test_an_exception_that_cannot_be_converted_to_text_is_not_sent(tmp_path):
    """An exception that raises an error when it is converted to text causes the same reply."""

    class StrangeError(Exception):
        def __str__(self):
            raise ValueError(PLANTED)

    def load(context):
        raise StrangeError

    assert Node(tmp_path, client_of(load)).ask() is None


# ---- Tables made in code, and public words ----


def test_a_loader_creates_the_table_once_per_run(tmp_path):
    """`client_of(load)` reads no table.

    The loader runs only in the first round. The settings may also be returned by a function.
    """
    calls = []

    def load(context):
        calls.append(context.node_config["place"])
        word = "sunshine" if len(calls) == 1 else "moonlight"
        return vp.read({"who": range(200), "what": [word] * 200}, user="who", items="what")

    node = Node(tmp_path, client_of(load, lambda context: {"state": str(tmp_path / "other"), "total-epsilon": 1.0}))
    (tmp_path / "other").mkdir()
    node.config["place"] = 3
    assert set(node.ask()) == {SUN}
    assert set(node.ask(SECOND)) == {Prefix(tuple("sunshi"))}
    assert calls == [3]
    assert node.ask(run=2) is None
    assert len(list((tmp_path / "other" / "runs").iterdir())) == 1
    assert list(node.state.iterdir()) == []


def test_public_words_are_excluded_in_the_first_round(node):
    """Users with an excluded word vote for their next word, and the run is still charged once."""
    rows = "".join(f"{user},sunshine\n{user},sunshine\n{user},moonlight\n" for user in range(200))
    (node.folder / "table.csv").write_text(f"who,what\n{rows}")
    assert set(node.ask(exclude=["sunshine"])) == {MOON}
    assert set(node.ask(SECOND, exclude=["sunshine"])) == {Prefix(tuple("moonli"))}
    run = node.state / "runs" / "1"
    assert not any(b"sunshine" in path.read_bytes() for path in run.rglob("*") if path.is_file())
    assert len(node.entries) == 1


@pytest.mark.parametrize("exclude", ["x", "3", "[3]", '{"size": 1, "fingerprint": "f"}', "[[[]]]", '"{table}"'])
def test_a_malformed_list_of_public_words_is_rejected(node, exclude):
    """A malformed list of public words is rejected, because a list in a message is untrusted input."""
    told = {"stage": "votes", "number": 0, "trie": "[]", "ballot": BALLOT}
    told["exclude"] = exclude.replace("{table}", node.config["source"])
    assert dict(node.send(told).content["votes"]) == {}
    assert not (node.state / "ledger.json").exists()
