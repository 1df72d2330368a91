"""Bytes and seconds of a round with secure aggregation, for 3, 10 and 30 nodes on one machine.

python -m benchmarks.papers.triehh_secure

All nodes and the server are in one process, one after the other, and every answer is written to bytes as Flower sends
it. So seconds are those of one core for all nodes together, without Flower's processes; bytes are what one node sends.
"""

import time
from collections import defaultdict

import numpy as np
from flwr.app import ConfigRecord, RecordDict
from flwr.common.serde import recorddict_to_proto

from benchmarks.support.common import table
from voxpop.mechanisms.heavy_hitters.masking import Collector, Member

LENGTHS = {"first round, 4 of 26 letters": 475_255, "later round, 2 letters of 200 prefixes": 140_600}


class Nodes:
    """Members in one process, with what each stage took."""

    def __init__(self, count: int, length: int):
        self.vectors = {node: np.arange(length, dtype=np.uint32) % (node + 2) for node in range(count)}
        self.members = {node: Member("run/0", node) for node in self.vectors}
        self.seconds, self.sent, self.told = 0.0, defaultdict(int), defaultdict(int)

    def ask(self, stage: str, content: dict) -> dict:
        """Let every node answer a stage."""
        answers = {}
        for node, told in content.items():
            self.told[node] += size({**told, "nodes": list(map(str, told.get("nodes", ())))})
            start = time.perf_counter()
            answers[node] = self.answer(self.members[node], stage, told)
            self.seconds += time.perf_counter() - start
            self.sent[node] += size({**answers[node], "nodes": list(map(str, answers[node].get("nodes", ())))})
        return answers

    def answer(self, member: Member, stage: str, told: dict) -> dict:
        """What a node of the federation does with a stage."""
        if stage == "keys":
            return {"keys": list(member.keys())}
        nodes = told["nodes"]
        if stage == "shares":
            peers = dict(zip(nodes, zip(told["masks"], told["letters"], strict=True), strict=True))
            letters = member.shares(peers)
            return {"nodes": list(letters), "letters": list(letters.values())}
        if stage == "masked":
            masked = member.masked(dict(zip(nodes, told["letters"], strict=True)), self.vectors[member.number])
            return {"sums": masked.astype("<u4").tobytes()}
        shares = member.unmasking(nodes)
        return {"nodes": list(shares), "shares": list(shares.values())}


def size(content: dict) -> int:
    """Bytes of a message's content."""
    return len(recorddict_to_proto(RecordDict({"round": ConfigRecord(content)})).SerializeToString())


def main() -> None:
    """Run, compare with the plain sum, print, write."""
    rows = [["round", "nodes", "a node sends", "a node is told", "all nodes, s", "server, s"]]
    for name, length in LENGTHS.items():
        for count in (3, 10, 30):
            nodes = Nodes(count, length)
            start = time.perf_counter()
            total = Collector("run/0", length, nodes.ask).total(list(nodes.vectors))
            whole = time.perf_counter() - start
            assert np.array_equal(total, sum(nodes.vectors.values()))
            sent, told = (f"{max(each.values()):,} bytes" for each in (nodes.sent, nodes.told))
            rows.append([name, count, sent, told, f"{nodes.seconds:.2f}", f"{whole - nodes.seconds:.2f}"])
    note = (
        "The public trie and the numbers of the ballot come on top of what a node is told: a few bytes a prefix. One "
    )
    note += "core of a busy machine, nodes one after the other. The server's seconds include writing messages to bytes."
    table("Secure aggregation by number of nodes", rows, "triehh_secure", note)


if __name__ == "__main__":
    main()
