"""Tests that private data remains on executors, and that no log contains keys or private words."""

import base64
from pathlib import Path

import polars as pl
import pytest
from framed import framed

import voxpop as vp
from voxpop.errors import InputError, SourceError, VoxpopError
from voxpop.privacy.secret import Secret

BUDGET = vp.Budget(epsilon=4, delta=1e-8)
CANARY = "xylophonecanary"


def test_the_driver_receives_only_released_words_and_noisy_numbers(collected, read_both, talk):
    """The driver receives released words, noisy levels and noisy measurements, but no weights.

    The driver also receives whether the pools of adaptive rounds fit into one task.
    """
    _, spread = read_both(talk)
    release = vp.NGrams(max_length=3, max_phrases_per_user=4).release(spread, BUDGET, seed=2)
    released = {token for gram in release.each_gram() for token in gram}
    words = {name.decode() for each in collected if each.column_names == ["name"] for name in each["name"].to_pylist()}
    assert words == released
    sizes = {length: sum(len(gram) == length for gram in release.each_gram()) for length in (1, 2, 3)}
    assert min(sizes.values()) > 0
    told = [table for table in collected if table.column_names not in (["name"], ["fits"])]
    answers = [(table.column_names, table.num_rows) for table in told]
    votes = [rows for names, rows in answers if names == ["name", "level"]]
    assert len(votes) >= 3  # The votes are those of two lengths and the second-chance pass.
    # Candidates of the second-chance pass are not measured before this pass.
    added = dict(enumerate(release.plan.second_chance.released, start=2))
    before = [(["name", "cells"], size - added.get(length, 0)) for length, size in sizes.items()]
    assert all(answer in before for answer in answers if answer[0] != ["name", "level"])


def test_noisy_measurements_include_grams_without_users(collected, spark):
    """Every gram has a noisy weight, so measurements do not reveal which grams have users."""
    from voxpop.engine.spark.histogram import SparkHistogram
    from voxpop.privacy.decisions import CellNoise

    held = SparkHistogram(spark.range(2, 5).selectExpr("id AS name", "0L AS high", "7L AS low"), words=False)
    cells = held.measured(CellNoise(100.0, 1, 1, Secret.from_seed(1), "noise/x"), 40)
    assert cells.size == collected[0].num_rows == 40
    assert len(set(cells.tolist())) > 30


def test_the_driver_receives_only_released_counts_of_sequences(collected, read_both, talk):
    """The tables contain only rows of released trees."""
    _, spread = read_both(talk)
    alphabet = ["thank", "you", "very", "much"]
    model = vp.Sequences(max_length=4, max_gram=2, alphabet=alphabet).release(spread, vp.Budget(4), seed=3)
    assert sum(table.num_rows for table in collected) >= model.tree.counts.size
    assert {tuple(table.column_names) for table in collected} == {("row", "symbol", "count")}


@pytest.mark.parametrize(
    "mechanism",
    [vp.NGrams(max_length=3, max_phrases_per_user=4), vp.Items(max_items_per_user=3)],
    ids=["grams", "items"],
)
def test_neither_keys_nor_words_are_written_to_logs(read_both, talk, written, monkeypatch, capfd, mechanism):
    """No file, event or output of the session contains a key in any encoding.

    Events and output contain no private word. Executors store private words, but no keys, in blocks and shuffles, which
    contain the source data.
    """
    keys, restrict = [], Secret.restrict

    def recording(secret, *purposes):
        restricted = restrict(secret, *purposes)
        keys.extend([secret._key, *restricted._keys.values()])
        return restricted

    monkeypatch.setattr(Secret, "restrict", recording)
    rows = pl.concat([talk, pl.DataFrame({"who": [9999], "what": [CANARY]}, schema=talk.schema)])
    _, spread = read_both(rows)
    release = mechanism.release(spread, BUDGET)
    assert len(release) > 5
    assert len(keys) > 20
    spellings = {s for key in keys for s in (key, key.hex().encode(), base64.b64encode(key)[:42])}
    files = [path for path in Path(written).rglob("*") if path.is_file()]
    contents = {path: path.read_bytes() for path in files}
    assert any(len(content) > 1000 for content in contents.values())
    assert not any(spelling in content for content in contents.values() for spelling in spellings)
    output = "".join(capfd.readouterr()).encode()
    events = b"".join(content for path, content in contents.items() if "events" in path.parts)
    assert b"SparkListenerJobStart" in events
    assert CANARY.encode() not in events + output
    assert not any(spelling in events + output for spelling in spellings)


def quoting_tokenizer(texts):
    raise ValueError(f"cannot cut {texts[0]} or {CANARY}")


@pytest.mark.parametrize(
    ("arguments", "values", "error", "message"),
    [
        ({"text": "what", "tokenizer": quoting_tokenizer}, [CANARY], InputError, "ValueError"),
        (
            {"text": "what", "tokenizer": lambda texts: [[1]] * len(texts)},
            [CANARY],
            InputError,
            "tokenizer must return",
        ),
        ({"tokens": "what"}, [[1.5]], SourceError, "strings or whole numbers"),
        ({"tokens": "what"}, [CANARY], SourceError, "column of lists"),
    ],
)
def test_errors_of_executors_quote_no_data(spark, capfd, arguments, values, error, message):
    """The driver raises errors of Voxpop, and the log of Spark does not quote data, either."""
    spread = vp.read(
        framed(spark, pl.DataFrame({"who": [1], "what": values})),
        user="who",
        options=vp.ReadOptions(partitions=2),
        **arguments,
    )
    with pytest.raises(error, match=message) as caught:
        vp.papers.SetUnion(100, "weighted", accounting="joint").release(spread, BUDGET)
    assert isinstance(caught.value, VoxpopError)
    chain = [caught.value, caught.value.__cause__]
    assert CANARY not in "".join(str(each) for each in chain) + "".join(capfd.readouterr())
