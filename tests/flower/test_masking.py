"""Tests of secure aggregation without a network, including totals, dropouts, false answers, and the server's data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxpop.errors import InputError

pytest.importorskip("flwr", reason="flwr is not installed: pip install voxpop-flower")

from voxpop_flower.masking import (
    Collector,
    Member,
    committed,
    least_of,
    mask,
    opened,
    pair_mask,
    public_of,
    sealed,
)

STAGES = ("keys", "shares", "masked", "unmasking")
LENGTH = 50


class Nodes:
    """Nodes with separate vectors. Some nodes drop out at a stage, and all answers to the server are recorded."""

    def __init__(self, count, lost=None, lies=None):
        rng = np.random.default_rng(count)
        self.vectors = {7 * n + 3: rng.integers(0, 1000, LENGTH).astype(np.uint32) for n in range(count)}
        self.members = {number: Member("run/0", number) for number in self.vectors}
        self.lost, self.lies, self.told, self.domain = lost or {}, lies, [], b""

    def ask(self, stage, content):
        answers = {}
        for number, told in content.items():
            if STAGES.index(stage) >= STAGES.index(self.lost.get(number, "unmasking")) and number in self.lost:
                continue
            answer = self.answer(self.members[number], stage, told)
            answers[number] = self.lies(stage, number, answer) if self.lies else answer
        self.told.append((stage, answers))
        return answers

    def answer(self, member, stage, told):
        if stage == "keys":
            return {"keys": list(member.keys())}
        if stage == "shares":
            letters = member.shares(
                dict(zip(told["nodes"], zip(told["masks"], told["letters"], strict=True), strict=True))
            )
            return {"nodes": list(letters), "letters": list(letters.values())}
        if stage == "masked":
            vector = self.vectors[member.number]
            masked = member.masked(dict(zip(told["nodes"], told["letters"], strict=True)), vector)
            return {"sums": masked.astype("<u4").tobytes()}
        shares = member.unmasking(told["nodes"])
        return {"nodes": list(shares), "shares": list(shares.values())}

    def total(self):
        self.collector = Collector("run/0", LENGTH, self.ask, self.domain)
        return self.collector.total(list(self.vectors))


@pytest.mark.parametrize("count", [3, 4, 10])
def test_the_total_equals_the_sum_over_all_nodes(count):
    """The total is exact, and the server reports no complaints about nodes."""
    nodes = Nodes(count)
    assert nodes.total().tolist() == sum(nodes.vectors.values()).tolist()
    assert nodes.collector.complaints == []


@settings(max_examples=25, deadline=None)
@given(st.integers(4, 9), st.data())
def test_lost_nodes_are_excluded_or_the_round_is_aborted(count, data):
    """The total is the plain sum over the nodes that sent sums. With too few nodes, there is no total."""
    lost = data.draw(st.dictionaries(st.sampled_from([7 * n + 3 for n in range(count)]), st.sampled_from(STAGES)))
    nodes = Nodes(count, lost)
    left = {
        stage: sum(STAGES.index(lost[n]) > place for n in lost) + len(nodes.vectors) - len(lost)
        for place, stage in enumerate(STAGES)
    }
    least = least_of(left["keys"])
    enough = left["keys"] >= max(3, least_of(count)) and min(left.values()) >= least
    if not enough:
        with pytest.raises(InputError, match="aborted and nothing is released"):
            nodes.total()
        return
    kept = [v for number, v in nodes.vectors.items() if lost.get(number, "unmasking") == "unmasking"]
    assert nodes.total().tolist() == sum(kept).tolist()
    assert len(nodes.collector.complaints) == len(lost)


@pytest.mark.parametrize("stage", STAGES)
def test_one_of_four_nodes_may_be_lost_at_any_stage(stage):
    """Three of four nodes are enough at every stage, but two nodes are not."""
    nodes = Nodes(4, {3: stage})
    kept = [vector for number, vector in nodes.vectors.items() if number != 3 or stage == "unmasking"]
    assert nodes.total().tolist() == sum(kept).tolist()
    with pytest.raises(InputError, match="nothing is released"):
        Nodes(4, {3: stage, 10: stage}).total()


def test_the_server_has_only_masked_sums():
    """The server receives no vector of any node, and a vector remains hidden if one of its two masks is removed."""
    nodes = Nodes(5, {10: "masked"})
    nodes.total()
    seen = repr(nodes.told) + repr(vars(nodes.collector))
    for number, vector in nodes.vectors.items():
        member = nodes.members[number]
        assert repr(vector.astype("<u4").tobytes())[2:-1] not in seen
        assert all(repr(secret)[2:-1] not in seen for secret in member.secrets)
    masked = dict(nodes.told[2][1].items())
    for number, answer in masked.items():
        own = mask(nodes.members[number].secrets[2], "own/run/0", LENGTH)
        rest = np.frombuffer(answer["sums"], "<u4") - own - nodes.vectors[number]
        assert np.count_nonzero(rest) > LENGTH // 2  # The masks of the node's pairs remain.


def test_a_node_answers_each_stage_once_and_sends_one_of_two_shares():
    """Nodes reject repeated stages, stages in the wrong order, and requests for both shares."""
    nodes = Nodes(4)
    nodes.total()
    member = nodes.members[3]
    for again in (member.keys, lambda: member.shares(member.peers), lambda: member.unmasking(list(nodes.vectors)[1:])):
        with pytest.raises(InputError, match="answers each stage once"):
            again()
    fresh = Nodes(4)
    told = {number: each.keys() for number, each in fresh.members.items()}
    peers = {number: keys[:2] for number, keys in told.items()}
    with pytest.raises(InputError, match="after stage 1"):
        fresh.members[3].masked({}, np.zeros(LENGTH, np.uint32))
    sent = {number: each.shares(peers) for number, each in fresh.members.items()}
    letters = {number: letter[3] for number, letter in sent.items() if number != 3}
    fresh.members[3].masked(letters, fresh.vectors[3])
    with pytest.raises(InputError, match="sends nothing more"):
        fresh.members[3].unmasking([3, 10])


@pytest.mark.parametrize("count", [3, 7, 30])
def test_no_node_can_be_unmasked_in_two_ways(count):
    """Both secrets of a node need more shares than there are nodes (2 least > count), but each node sends one share."""
    assert 2 * least_of(count) > count


def change(text):
    return bytes([text[0] ^ 1]) + text[1:]


@pytest.mark.parametrize("stage", ["shares", "unmasking"])
def test_a_node_that_sends_wrong_shares_is_detected(stage):
    """The recipient rejects an encrypted share that was changed, and a changed share does not match its commitment."""

    def lies(now, number, answer):
        if now != stage or number != 3:
            return answer
        name = "letters" if stage == "shares" else "shares"
        return {**answer, name: [change(each[-16:]) if stage == "unmasking" else change(each) for each in answer[name]]}

    with pytest.raises(InputError):
        Nodes(3, lies=lies).total()


def test_malformed_answers_are_skipped():
    """Sums of the wrong length and malformed keys are excluded, and the other nodes continue."""

    def lies(now, number, answer):
        return {"keys": [b"short"], "sums": b"123"} if number == 3 and now == "masked" else answer

    nodes = Nodes(4, lies=lies)
    assert nodes.total().tolist() == sum(v for n, v in nodes.vectors.items() if n != 3).tolist()
    assert nodes.collector.complaints == ["node 3 is skipped: its answer does not fit the round"]


def test_malformed_answers_cause_only_a_complaint():
    """At every stage, numbers, texts or None instead of lists of bytes cause one complaint.

    The other nodes continue.
    """
    for stage, name in zip(STAGES, ("keys", "letters", "sums", "shares"), strict=True):
        for wrong in (7, "text", [1, 2], None, [b"one"]):

            def lies(now, number, answer, stage=stage, name=name, wrong=wrong):
                return {**answer, name: wrong} if number == 3 and now == stage else answer

            nodes = Nodes(4, lies=lies)
            counted = {number: v for number, v in nodes.vectors.items() if number != 3 or stage == "unmasking"}
            assert nodes.total().tolist() == sum(counted.values()).tolist()
            assert [line.startswith("node 3 ") for line in nodes.collector.complaints] == [True]


def test_sums_over_another_domain_are_excluded():
    """The digest detects sums over another domain.

    Complaints distinguish lost nodes from nodes that reject a message.
    """

    def lies(now, number, answer):
        if now != "masked":
            return answer
        return {} if number == 10 else {**answer, "domain": b"other" if number == 3 else b"one"}

    nodes = Nodes(7, {17: "masked"}, lies=lies)
    nodes.domain = b"one"
    with pytest.raises(InputError, match="4 of 7 nodes are left and 5 are needed"):
        nodes.total()
    assert nodes.collector.complaints == [
        "node 3 is skipped: its answer does not fit the round",
        "node 10 is skipped: refused or failed",
        "node 17 is skipped: lost or late",
    ]


def test_an_encrypted_share_is_bound_to_its_sender_recipient_and_session():
    """An encrypted share can be decrypted only with its key and its context."""
    key = bytes(32)
    cipher = sealed(key, b"share", "run/1/2")
    assert opened(key, cipher, "run/1/2") == b"share"
    for wrong in ((bytes(31) + b"1", cipher, "run/1/2"), (key, change(cipher), "run/1/2"), (key, cipher, "run/2/1")):
        with pytest.raises(InputError, match="changed in transit"):
            opened(*wrong)


def test_masks_of_a_pair_cancel_and_their_bytes_are_uniform():
    """The two masks of a pair add up to zero.

    Another session gives other masks. The test of the mean of 10^5 bytes gives a false alarm with probability below
    1e-9.
    """
    one, two = Member("s", 1), Member("s", 2)
    ours = pair_mask(one.secrets[0], public_of(two.secrets[0]), 1, 2, "s", 25_000)
    theirs = pair_mask(two.secrets[0], public_of(one.secrets[0]), 2, 1, "s", 25_000)
    assert not np.any(ours + theirs)
    other = pair_mask(one.secrets[0], public_of(two.secrets[0]), 1, 2, "t", 25_000)
    assert np.count_nonzero(ours == other) < 10
    assert abs(ours.view(np.uint8).mean() - 127.5) < 6.2 * 73.9 / 100_000**0.5
    assert committed(one.secrets[2]) != committed(two.secrets[2])
