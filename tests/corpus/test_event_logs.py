"""Tests that XES event logs are read as tables of events, and that columns are found by their standard names."""

import gzip
import random
import xml.etree.ElementTree as ET

import polars as pl
import pytest

import voxpop as vp
from corpus.test_events import sequences_of
from support.look import read_engine
from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.reading import files

EVENTS = [
    ("c1", "open", "2026-01-01T10:00:00.000+01:00", "ann"),
    ("c1", "close", "2026-01-01T09:30:00Z", None),
    ("c1", "check & sign", "2026-01-01T09:10:00.5+00:00", "böb"),
    ("c2", "open", "2026-01-03T00:00:00", "ann"),
]
IN_ORDER = [("open", "check & sign", "close"), ("open",)]


def log_of(events, *, namespace=' xmlns="http://www.xes-standard.org/"'):
    """Return a log with nested attributes, globals and classifiers, which the standard library writes."""
    root = ET.Element("log")
    ET.SubElement(ET.SubElement(root, "global", scope="event"), "string", key="concept:name", value="secret default")
    for case in dict.fromkeys(event[0] for event in events):
        trace = ET.SubElement(root, "trace")
        name = ET.SubElement(trace, "string", key="concept:name", value=case)
        ET.SubElement(name, "string", key="concept:name", value="nested")
        ET.SubElement(trace, "string", key="customer", value=f"person {case[-1]}")
        for _, activity, time, resource in (event for event in events if event[0] == case):
            event = ET.SubElement(trace, "event")
            ET.SubElement(event, "date", key="time:timestamp", value=time)
            held = ET.SubElement(event, "string", key="concept:name", value=activity)
            ET.SubElement(held, "date", key="time:timestamp", value="2020-01-01T00:00:00Z")
            if resource:
                ET.SubElement(event, "string", key="org:resource", value=resource)
    return ET.tostring(root, encoding="unicode").replace("<log", f"<log{namespace}", 1)


@pytest.mark.parametrize("name", ["log.xes", "log.XES", "log.xes.gz"])
@pytest.mark.parametrize("namespace", ["", ' xmlns="http://www.xes-standard.org/"'])
def test_an_event_log_is_read_as_a_table_of_events(tmp_path, name, namespace):
    """Events with different offsets are ordered by time, and nested attributes are not attributes of the event."""
    content = log_of(EVENTS, namespace=namespace).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    for named in ({}, {"user": "case:concept:name", "sequence": "concept:name", "order": "time:timestamp"}):
        found = sequences_of(read_engine(tmp_path / name, **named))
        assert sorted(each for sequences in found.values() for each in sequences) == sorted(IN_ORDER)
    persons = sequences_of(read_engine(tmp_path / name, user="case:customer"))
    assert sorted(each for sequences in persons.values() for each in sequences) == sorted(IN_ORDER)
    resources = read_engine(
        tmp_path / name, user="case:concept:name", items="org:resource", options=vp.ReadOptions(memory="1GiB")
    )
    assert sorted(resources.vocabulary.to_pylist()) == ["ann", "böb"]


@pytest.mark.parametrize("time", ["2026-01-01T10:00:00.000+01:00", "2026-01-01T10:00:00", "9999-12-31T23:59:58Z"])
def test_events_at_the_same_time_keep_the_order_of_the_file(tmp_path, time):
    """A log often contains only dates.

    In this case, the order of the file, and not the order of the names, determines the order in a trace.
    """
    names = ["register", "check", "decide", "archive", "check"]
    events = [(case, name, time, None) for case in ("c1", "c2") for name in names]
    (tmp_path / "log.xes").write_text(log_of([*events, ("c1", "before", "2020-01-01T00:00:00Z", None)]))
    found = sequences_of(read_engine(tmp_path / "log.xes"))
    assert sorted(each for sequences in found.values() for each in sequences) == [
        ("before", *names),
        tuple(names),
    ]


@pytest.mark.jit  # Without compiled kernels, long inputs would take minutes and test nothing more.
def test_long_logs_are_read_in_blocks(tmp_path, monkeypatch):
    """A log of many blocks gives the same sequences as a table of these events in memory."""
    for name in ("BLOCK", "SMALL_BLOCK"):
        monkeypatch.setattr(files, name, 1 << 14)
    rng = random.Random(3)
    events = [
        (
            f"c{case:05}",
            f"step {rng.randrange(9)}",
            f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z",
            "r",
        )
        for case in range(300)
        # No two events have the same time, because the order of equal times differs between files and tables.
        for second in rng.sample(range(3_600), rng.randrange(1, 8))
    ]
    (tmp_path / "log.xes").write_text(log_of(events))
    assert (tmp_path / "log.xes").stat().st_size > 10 * files.BLOCK
    columns = ["case:concept:name", "concept:name", "time:timestamp", "org:resource"]
    table = pl.DataFrame(events, schema=columns, orient="row")
    expected = sequences_of(read_engine(table))
    assert sequences_of(read_engine(tmp_path / "log.xes")) == expected
    assert sequences_of(read_engine(tmp_path / "log.xes", options=vp.ReadOptions(memory="1GiB"))) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2], "a complete XES log"),
        (lambda text: "secret", "a complete XES log"),
        (lambda text: text + "<log/>", "a complete XES log"),
        (lambda text: "<html><body>secret</body></html>", "not an XES log"),
        (lambda text: '<!DOCTYPE x [<!ENTITY e "secret">]>' + text, "entities"),
        (lambda text: text.replace("2026-01-01T09:30:00Z", "secret"), "nor an ISO"),
        (lambda text: text.replace("concept:name", "secret"), "no column"),
    ],
)
def test_broken_logs_are_rejected_without_quoting_them(tmp_path, change, message, capfd):
    """A truncated log raises an error and is not read as a smaller log. Neither messages nor output quote the log."""
    (tmp_path / "log.xes").write_text(change(log_of(EVENTS)))
    with pytest.raises((SourceError, ColumnError), match=message) as caught:
        vp.read(tmp_path / "log.xes")
    assert "secret" not in str(caught.value) + "".join(capfd.readouterr())


NAMES = [
    ("case:concept:name", "concept:name", "time:timestamp"),
    ("ocel:oid", "ocel:activity", "ocel:timestamp"),
    ("Case ID", "Activity", "Timestamp"),
    ("case_id", "activity", "time"),
    ("Case ID", "Activity", "Complete Timestamp"),
]


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("kind", ["polars", "arrow", "csv", "parquet", "dict"])
def test_columns_are_found_by_their_standard_names(tmp_path, names, kind, capsys):
    """Standard names are found in tables and in files. The reader reports that cases, not persons, are protected."""
    table = pl.DataFrame([(*event[:2], event[2][:19]) for event in EVENTS], schema=list(names), orient="row")
    source = {
        "polars": lambda: table,
        "arrow": table.to_arrow,
        "csv": lambda: [table.write_csv(tmp_path / "log.csv"), tmp_path / "log.csv"][1],
        "parquet": lambda: [table.write_parquet(tmp_path / "log.parquet"), tmp_path / "log.parquet"][1],
        "dict": lambda: table.to_dict(as_series=False),
    }[kind]()
    given = dict(zip(("user", "sequence", "order"), names, strict=True))
    with_names = sequences_of(read_engine(source, **given))
    assert "event log" not in capsys.readouterr().err
    assert sequences_of(read_engine(source)) == with_names
    said = capsys.readouterr().err
    assert "each case is protected as one user" in said
    assert f'sequence="{names[1]}", order="{names[2]}"' in said


def test_reading_a_text_table_as_an_event_log_is_reported(capsys):
    """If a caller omits text=, a message names the columns that were read instead."""
    table = {"person": ["p"], "notes": ["a b"], "activity": ["x"], "time": [1]}
    vp.read(table, user="person")
    said = capsys.readouterr().err
    assert 'Read as an event log: sequence="activity", order="time".' in said
    assert "each case" not in said


def test_columns_without_standard_names_are_not_guessed():
    """Several columns with a standard name, missing columns and contents without users raise errors with advice."""
    table = pl.DataFrame({"case": ["a"], "Case ": ["b"], "activity": ["x"], "time": [1]})
    with pytest.raises(InputError, match="several columns have a standard name for user="):
        vp.read(table)
    with pytest.raises(InputError, match="no column has a standard name for order="):
        vp.read(pl.DataFrame({"case": ["a"], "activity": ["x"]}))
    persons = pl.DataFrame({"person": ["p"], "activity": ["x"], "time": [1]})
    assert sequences_of(read_engine(persons, user="person"))
    with pytest.raises(InputError, match=r"exactly one of .* source with a schema"):
        vp.read(iter([{"case": "a"}]), user="case")
    with pytest.raises(SourceError, match="missing"):
        vp.read("missing.xes")
    with pytest.raises(InputError, match="user= is missing"):
        vp.read(table, sequence="activity", order="time")


def test_the_error_for_a_missing_attribute_explains_how_attributes_are_named(tmp_path):
    """The message explains that the names of trace attributes have the prefix `case:`."""
    path = tmp_path / "log.xes"
    path.write_text('<log><trace><event><string key="concept:name" value="a"/></event></trace></log>')
    with pytest.raises(ColumnError, match="The names of attributes of traces begin with `case:`") as caught:
        vp.read(path, user="customer", sequence="concept:name")
    assert "list of rows" not in str(caught.value)
