"""The folder of a run on a node, which contains all values that the proof assumes to be fixed for the run.

These values are the word of each user, the terms and the ballot of the run, the trie so far, and the last stage that
the node answered. The node writes the folder in the first round that it answers, and later rounds read nothing else.
Only one process of a node uses the folder at a time (`NodeSettings.locked`). Each file is replaced in one step, so a
process that is killed leaves either the old or the new file.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, final

from voxpop.engine.contract import check_engine
from voxpop.engine.local.corpus import LocalCorpus, load_corpus
from voxpop.errors import InputError
from voxpop.files.folder import replace_file, sync
from voxpop.mechanisms.heavy_hitters.protocol import Rules, Trie, is_valid
from voxpop_flower.federation import read_trie, write_trie

STATE, ELECTORATE = "run.json", "electorate"
STAGES = ("votes", "keys", "shares", "masked", "unmasking")
"""The stages of a round in their order. Open sums use only the first stage, and secure sums use the other four."""
MOST_ROUNDS = 1 << 32
HOUR = 3600.0


@final
class Kept:
    """The folder of a run."""

    def __init__(self, runs: Path, run_id: int) -> None:
        """Set the path of a run's folder.

        Args:
            runs: The folder of all runs of the node.
            run_id: The number of the run in Flower.
        """
        self.path = runs / str(int(run_id))

    @property
    def exists(self) -> bool:
        """Whether the node takes part in the run."""
        return self.path.exists()

    def start(self, terms: Mapping[str, Any], exclude: str) -> None:
        """Create the folder.

        Args:
            terms: The terms of the run.
            exclude: The fingerprint of the run's public list of words.
        """
        self.path.mkdir(mode=0o700)
        started = {"started": time.time(), "terms": terms, "exclude": exclude, "said": [-1, 0]}
        self._write({**started, "ballot": None, "trie": write_trie(Trie()), "electorate": ""})
        sync(self.path.parent)

    def require(self, terms: Mapping[str, Any], exclude: str | None = None) -> None:
        """Compare the terms of a message with the terms of the first message.

        Raises:
            InputError: The terms differ.
        """
        state = self._read()
        # Compare after a round trip through JSON, because the stored terms were written as JSON.
        same = json.loads(json.dumps(terms)) == state["terms"] and exclude in (None, state["exclude"])
        if not same:
            raise InputError("the terms of the run differ from its first round. Start a new run.")

    def claim(self, number: int, stage: str) -> None:
        """Record a stage before it is answered, because a second answer would draw different votes.

        Args:
            number: The number of completed rounds.
            stage: One of `STAGES`.

        Raises:
            InputError: This stage or a later stage was answered before.
        """
        state, now = self._read(), [number, STAGES.index(stage)]
        if now <= state["said"]:
            raise InputError(
                f"round {number + 1} of this run was answered before, up to this stage; a node answers each stage "
                "once. Start a new run."
            )
        self._write({**state, "said": now})

    def require_votes(self, ballot: list[float], trie: Trie, rules: Rules) -> None:
        """Check that the ballot equals the ballot of earlier rounds, and that the trie extends the earlier trie.

        Raises:
            InputError: The ballot or the trie contradicts an earlier round.
        """
        state = self._read()
        if state["ballot"] not in (None, ballot):
            raise InputError("the votes that the server requests differ from an earlier round. Start a new run.")
        before = read_trie(state["trie"]).levels
        levels = trie.levels
        grown = all(
            is_valid(prefix, Trie(levels[:place]), rules) for place, level in enumerate(levels) for prefix in level
        )
        if len(levels) >= rules.rounds or levels[: len(before)] != before or not grown:
            raise InputError("the trie does not continue the trie of an earlier round. Start a new run.")
        self._write({**state, "ballot": ballot, "trie": write_trie(trie)})

    def electorate(self, read: Callable[[], LocalCorpus]) -> LocalCorpus:
        """Return the users of the run with their words.

        The table is read once, and later calls read the folder.

        Args:
            read: A function that returns the users with the words they vote for.

        Raises:
            InputError: The words were lost or damaged. In this case the node answers no further rounds of the run.
        """
        state, folder = self._read(), self.path / ELECTORATE
        if not state["electorate"]:
            read().save(folder)
            state = {**state, "electorate": _digest(folder)}
            self._write(state)
        if _digest(folder) != state["electorate"]:
            raise InputError("the words of this run were lost or damaged. Start a new run.")
        corpus: LocalCorpus = check_engine(load_corpus(folder)).gathered()
        return corpus

    def delete_words(self) -> None:
        """Delete only the words, and record that every round was answered. The rest of the folder is public."""
        shutil.rmtree(self.path / ELECTORATE, ignore_errors=True)
        self._write({**self._read(), "said": [MOST_ROUNDS, 0]})

    def delete(self) -> None:
        """Delete the folder. The ledger of the node keeps the number of the run."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _read(self) -> dict[str, Any]:
        try:
            parsed = json.loads((self.path / STATE).read_bytes())
            state, checksum = parsed["state"], parsed["checksum"]
        except (OSError, ValueError, TypeError, KeyError):
            state, checksum = {}, ""
        if checksum != _checksum(state):
            raise InputError("the folder of this run was lost or damaged. Start a new run.")
        return dict(state)

    def _write(self, state: Mapping[str, Any]) -> None:
        content = json.dumps({"state": state, "checksum": _checksum(state)})
        replace_file(self.path / STATE, content.encode())
        sync(self.path)


def delete_old(runs: Path, keep_hours: float) -> None:
    """Delete the folders of runs that started too long ago, and damaged folders that were last changed too long ago.

    Args:
        runs: The folder of all runs of the node.
        keep_hours: The maximum age of a folder in hours.
    """
    for entry in os.scandir(runs):
        try:
            started = float(json.loads(Path(entry.path, STATE).read_bytes())["state"]["started"])
        except (OSError, ValueError, TypeError, KeyError):
            started = entry.stat(follow_symlinks=False).st_mtime
        if abs(time.time() - started) > keep_hours * HOUR:
            shutil.rmtree(entry.path, ignore_errors=True)


def _checksum(state: Mapping[str, Any]) -> str:
    return sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def _digest(folder: Path) -> str:
    """Return a digest of the names and contents of the files of a folder, or "" if the folder does not exist."""
    whole = sha256()
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        whole.update(f"{path.name} {path.stat().st_size}\n".encode())
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                whole.update(block)
    return whole.hexdigest() if folder.is_dir() else ""
