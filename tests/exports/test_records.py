"""The record for the deployments registry, checked against the fields of its schema, and the checklist."""

import json
import re

import polars as pl
import pytest

import voxpop as vp

BUDGET = vp.Budget(4, 1e-7)
TEXT, NUMBER = str, (int, float)
SCHEMA = {
    "url_slug": TEXT,
    "deployment": {
        "basic": {
            "name": TEXT,
            "data_curators": [
                {"data_curator_name": TEXT, "data_curator_type": {"Government", "Industry", "Nonprofit"}}
            ],
            "description": TEXT,
            "intended_use": TEXT,
            "data_product_type": {
                "Summary statistics",
                "Machine learning model",
                "Dataset",
                "Synthetic data",
                "Interactive API",
                "SQL queries",
            },
            "data_product_region": TEXT,
            "publication_date": re.compile(r"\d{4}-\d\d-\d\d"),
        },
        "dp_variant": {
            "variant_name": {"Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"},
            "data_domain": TEXT,
            "unprotected_quantities": TEXT,
        },
        "privacy_loss": {
            "privacy_unit": TEXT,
            "privacy_unit_details": TEXT,
            "privacy_parameters": {"epsilon": NUMBER, "delta?": NUMBER},
            "privacy_parameters_details": TEXT,
        },
        "deployment_model": {
            "model_name": {"Local", "Central", "Shuffle", "Federated", "Varies"},
            "trust_assumptions": TEXT,
            "release_type": {"One release", "Many releases"},
            "data_source_type": {"Static", "Dynamic"},
            "access_type": {"Interactive", "Non-interactive"},
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": TEXT,
            "mechanisms": TEXT,
            "composition": TEXT,
            "post_processing": TEXT,
            "justification": TEXT,
            "utility": TEXT,
        },
        "administrative": {
            "status": {"Converted", "Draft", "Pending", "Changes Required", "Approved"},
            "registry_authors": [TEXT],
            "tier": {1, 2, 3},
        },
    },
}
"""Names and values of the fields that a record may have: those of opendp/deployments-registry-data in 2026. All that
it requires are here; those that end in "?" may be missing, and others are not allowed."""


def conforms(value, schema):
    """Return whether a value has exactly the fields of a schema, of the right kinds."""
    if isinstance(schema, dict):
        names = {name.rstrip("?"): each for name, each in schema.items()}
        needed = {name for name in schema if not name.endswith("?")}
        return needed <= value.keys() <= names.keys() and all(conforms(value[name], names[name]) for name in value)
    if isinstance(schema, list):
        return isinstance(value, list) and len(value) > 0 and all(conforms(each, schema[0]) for each in value)
    if isinstance(schema, set):
        return value in schema
    if isinstance(schema, re.Pattern):
        return isinstance(value, str) and schema.fullmatch(value) is not None
    return isinstance(value, schema) and value != ""


def read(text):
    """Return the value of a record in the part of YAML that records use: blocks, JSON strings and numbers."""
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in text.splitlines()]

    def scalar(written):
        value, end = json.JSONDecoder().raw_decode(written)
        assert not written[end:].strip() or written[end:].strip().startswith("#"), written
        return value

    def block(indent):
        found = [] if lines[0][1].startswith("- ") else {}
        while lines and lines[0][0] == indent:
            _, line = lines[0]
            if isinstance(found, list):
                if re.match(r"- \w+:", line):
                    lines[0] = (indent + 2, line[2:])
                    found.append(block(indent + 2))
                else:
                    found.append(scalar(lines.pop(0)[1][2:]))
                continue
            name, _, written = lines.pop(0)[1].partition(":")
            found[name] = scalar(written.strip()) if written.strip() else block(lines[0][0])
        return found

    return block(0)


@pytest.fixture(scope="module")
def results():
    """A result of each kind, with statements of the operator."""
    table = pl.DataFrame({"who": range(3000), "what": ["thank you very much", "see you soon"] * 1500})
    visits = pl.DataFrame({"who": range(3000), "to": [["a", "b"], ["a"], ["b", "a", "c"]] * 1000})
    posts = vp.read(table, user="who", text="what")
    words = vp.SetUnion().release(posts, BUDGET)
    made = {
        "words": words,
        "phrases": vp.NGrams().release(posts, BUDGET),
        "hitters": vp.HeavyHitters().release(posts, BUDGET),
        "model": vp.Sequences(alphabet=["a", "b", "c"]).release(vp.read(visits, user="who", sequence="to"), BUDGET),
        "counts": words.count(posts, BUDGET),
        "top": words.top(3, posts, BUDGET),
        "found": vp.Sequences(alphabet="find").release(vp.read(visits, user="who", sequence="to"), BUDGET),
    }
    said = {"title": 'Words: "A" # 1', "operator": "Ann Example", "purpose": "Completions", "date": "2026-11-25"}
    return {name: each.with_metadata(dataset="Forum posts", **said) for name, each in made.items()}


NAMES = ["words", "phrases", "hitters", "model", "counts", "top", "found"]


@pytest.mark.parametrize("name", NAMES)
def test_a_record_conforms_to_the_schema(results, name):
    """Its fields, and the numbers of the guarantee, which of counts includes the release."""
    result = results[name]
    record = read(vp.exports.registry_record(result))
    assert conforms(record, SCHEMA)
    guarantee = getattr(result, "with_release", result.guarantee)
    loss = record["deployment"]["privacy_loss"]["privacy_parameters"]
    assert (loss["epsilon"], loss.get("delta", 0.0)) == (guarantee.epsilon, guarantee.delta)
    basic = record["deployment"]["basic"]
    assert (basic["name"], basic["intended_use"], basic["publication_date"]) == (
        'Words: "A" # 1',
        "Completions",
        "2026-11-25",
    )
    assert f"{len(result):,}" in basic["description"]


def test_the_check_finds_other_records(results):
    """A missing, an additional and a wrong field."""
    record = read(vp.exports.registry_record(results["words"]))
    for change in (
        lambda basic: basic.pop("name"),
        lambda basic: basic.update(author="x"),
        lambda basic: basic.update(data_product_type="List"),
        lambda basic: basic.update(publication_date="1/1/2026"),
        lambda basic: basic.update(data_curators=[]),
    ):
        wrong = json.loads(json.dumps(record))
        change(wrong["deployment"]["basic"])
        assert not conforms(wrong, SCHEMA)


@pytest.mark.parametrize("name", NAMES)
def test_a_yaml_library_reads_the_same(results, name):
    """As the registry does."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install pyyaml")
    text = vp.exports.registry_record(results[name])
    assert yaml.safe_load(text) == read(text)


def test_what_is_not_stated_is_marked(results):
    """The operator must complete or confirm these lines."""
    bare = vp.SetUnion().plan(BUDGET)
    text = vp.exports.registry_record(
        vp.Release.from_items(results["words"].grams["gram"].combine_chunks().flatten(), bare, bare.guarantee)
    )
    assert text.count('"not stated"  # complete or confirm') == 6
    assert conforms(read(text), SCHEMA)


@pytest.mark.parametrize("name", NAMES)
def test_the_checklist_states_the_facts(results, name):
    """The guarantee, the proof, the ledger and the conditions."""
    text = vp.exports.checklist(results[name])
    assert text.count("## ") == 10
    assert text.count("- [ ] ") == 14
    assert f"- {getattr(results[name], 'with_release', results[name].guarantee)}." in text
    assert "- Data set: Forum posts. Purpose: Completions." in text
    assert "Ledger: not stated." in text
    if name == "phrases":
        assert "Written by one user: up to " in text


def test_a_result_that_is_not_private_is_refused(results):
    """There is nothing to sign."""
    posts = vp.read(pl.DataFrame({"who": range(3000), "what": ["tea"] * 3000}), user="who", items="what")
    seeded = vp.SetUnion().release(posts, BUDGET, seed=1)
    for document in (vp.exports.registry_record, vp.exports.checklist):
        with pytest.raises(vp.errors.InputError, match=r"NOT PRIVATE.*must be about a private result"):
            document(seeded)


def test_the_command_writes_both(results, tmp_path, capsys):
    """Of a release and of a model."""
    from voxpop.cli import main

    for name in ("words", "model"):
        results[name].save(tmp_path / name)
        for format, file in (("registry", "record.yaml"), ("checklist", "list.md")):
            path = tmp_path / f"{name}-{file}"
            assert main(["export", str(tmp_path / name), "--format", format, "-o", str(path)]) == 0
            assert path.stat().st_size > 1000
    assert "Wrote registry to" in capsys.readouterr().out
