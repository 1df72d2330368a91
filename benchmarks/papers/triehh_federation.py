"""Bytes and seconds of a round in a real federation on loopback, with a SuperLink and 3, 10 and 30 SuperNodes.

python -m benchmarks.papers.triehh_federation

Each node, and each answer of a node, is a process that communicates over HTTP. The processes are forks of one process
that has imported everything (`benchmarks/support/forks.py`), so the start of Python is not measured.
"""

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.support.benchmark import HITTERS, Benchmark
from benchmarks.support.federation import Federation, app_with

DEPENDS = (*HITTERS, "flower/src/voxpop_flower")
BENCHMARK = Benchmark(__file__, ("triehh_federation",), DEPENDS, minutes=4, timed=True, environment=".venv-flower")

NODES = (3, 10, 30)
USERS = 300
"""The number of users per node."""
SERVER = '''
"""The server, which writes down what each stage took: seconds, and bytes of each message's content."""

import json
import time
from pathlib import Path

from flwr.common.serde import recorddict_to_proto
from flwr.serverapp import ServerApp

from voxpop_flower import serving as flower

app = ServerApp()


def size(message):
    return 0 if message.has_error() else len(recorddict_to_proto(message.content).SerializeToString())


class Watched:
    """The way to the nodes, measured."""

    def __init__(self, grid):
        self.grid, self.stages = grid, []

    def get_node_ids(self):
        return self.grid.get_node_ids()

    def send_and_receive(self, messages, *, timeout):
        messages = list(messages)
        told, start = max(map(size, messages)), time.perf_counter()
        answers = list(self.grid.send_and_receive(messages, timeout=timeout))
        taken = time.perf_counter() - start
        round_ = messages[0].content["round"]
        self.stages.append({
            "round": round_.get("number"), "stage": round_["stage"], "told": told,
            "sent": max(map(size, answers)), "answers": len(answers), "asking": taken,
        })
        return answers


@app.main()
def main(grid, context):
    watched, ends, real = Watched(grid), [], flower.secure_round

    def timed(*given):
        start = time.perf_counter()
        answer = real(*given)
        ends.append(time.perf_counter() - start)
        return answer

    flower.secure_round = timed
    flower.serve(watched, context)
    path = Path(context.run_config["measured"])
    path.with_suffix(".part").write_text(json.dumps({"stages": watched.stages, "rounds": ends}))
    path.with_suffix(".part").rename(path)
'''


def main() -> None:
    """Run the federations, print and write the results."""
    parser = argparse.ArgumentParser(description="rounds of a real federation")
    parser.add_argument("--nodes", type=int, nargs="+", default=NODES)
    rows = [["nodes", "round", "sums", "a node sends", "a node is told", "round, s", "of it with the nodes, s"]]
    for count in parser.parse_args().nodes:
        measured = federate(count)
        for number, seconds in enumerate(measured["rounds"]):
            stages = [stage for stage in measured["stages"] if stage["round"] == number]
            assert all(stage["answers"] == count for stage in stages)
            sent, told, asking = (sum(stage[name] for stage in stages) for name in ("sent", "told", "asking"))
            sums = next(stage["sent"] for stage in stages if stage["stage"] == "masked") // 4
            rows.append(
                [
                    count,
                    number + 1,
                    f"about {sums:,}",
                    f"{sent:,} bytes",
                    f"{told:,} bytes",
                    f"{seconds:.1f}",
                    f"{asking:.1f}",
                ]
            )
    note = (
        f"{USERS} users per node; words of at most four letters, all four in the first round. Seconds of wall time, "
        f"with {os.cpu_count()} cores for all processes. SuperNodes look for messages every three "
        "seconds and a round has four stages, so up to twelve seconds are waiting. Bytes are contents of messages, "
        "without HTTP's own."
    )
    BENCHMARK.table("Rounds of a real federation on loopback", rows, "triehh_federation", note)


def federate(count: int) -> dict[str, Any]:
    """Run a federation with this number of nodes, and return the measurements of its server."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        federation = Federation(folder)
        try:
            for number in range(count):
                users = range(number * USERS, (number + 1) * USERS)
                said = [("tree", "moon", "sun")[user % 3] for user in users]
                path = folder / f"node{number}.parquet"
                pl.DataFrame({"who": users, "what": said}).write_parquet(path)
                state = folder / f"state{number}"
                state.mkdir()
                bounds = f'state="{state}" total-epsilon=2.0 total-delta=1e-5'
                federation.node(f"node{number}", f'source="{path}" user="who" items="what" {bounds}')
            app = app_with(folder, f'\nmeasured = "{folder}/measured.json"\n', server=SERVER)
            output = f'output="{folder}/found"'
            federation.run("run", app, f"max-length=5 nodes={count} patience=900.0 {output}")
            federation.wait_for((folder / "measured.json").exists, 1800)
            return json.loads((folder / "measured.json").read_text())
        finally:
            federation.stop()


if __name__ == "__main__":
    main()
