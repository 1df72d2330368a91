"""Simulated nodes with tables made in code: some are lost at times, and the table of one changes between rounds."""

import os
import random
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
from flwr.app import Context

import voxpop as vp
from voxpop_flower import client_of

USERS = 100
"""Users of each node."""
LOST = 0.03
"""The share of messages at which a node is lost, the same ones in every simulation."""
CHANGING = 7
"""The node whose table is another one whenever it is read."""
FOLDER = Path(os.environ.get("VOXPOP_SIMULATION", Path(tempfile.gettempdir()) / "voxpop-simulation"))


def load(context: Context) -> Any:
    """Return the data of the node's users."""
    node = int(context.node_config["partition-id"])
    users = range(node * USERS, node * USERS + USERS)
    words = [["sun", "star", "moon"][user % 3] if user % 5 else f"own{user}" for user in users]
    if node == CHANGING:
        words = [f"word{counted(FOLDER / f'node{node}' / 'reads')}"] * USERS
    return vp.read(pl.DataFrame({"who": users, "what": words}), user="who", items="what")


def config(context: Context) -> dict[str, Any]:
    """Return the node's own bounds, or lose the node."""
    state = FOLDER / f"node{context.node_config['partition-id']}"
    state.mkdir(parents=True, exist_ok=True)
    if random.Random(f"{state.name}, message {counted(state / 'messages')}").random() < LOST:
        raise RuntimeError("this node is lost")
    return {"state": str(state), "total-epsilon": 4.0, "total-delta": 2e-5, "secure": False}


def counted(path: Path) -> int:
    """Add a line to a file, and return the number of its lines."""
    with open(path, "a+") as file:
        file.write("once\n")
        file.seek(0)
        return len(file.readlines())


app = client_of(load, config)
