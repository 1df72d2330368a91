"""Tests of the record for the deployments registry, which must conform to its schema, and of the checklist."""

import copy

import jsonschema
import polars as pl
import pytest
import yaml

import voxpop as vp
from support.deployments_schema import SCHEMA
from voxpop.privacy.composition import total_of
from voxpop.release.verifying import verify

BUDGET = vp.Budget(4, 1e-6)
REGISTRY = jsonschema.Draft7Validator(SCHEMA, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)


@pytest.fixture(scope="module")
def results():
    """Return a result of each kind, with the operator's metadata."""
    table = pl.DataFrame({"who": range(3000), "what": ["thank you very much", "see you soon"] * 1500})
    visits = pl.DataFrame({"who": range(3000), "to": [["a", "b"], ["a"], ["b", "a", "c"]] * 1000})
    posts = vp.read(table, user="who", text="what")
    words = vp.Items().release(posts, BUDGET)
    made = {
        "words": words,
        "phrases": vp.NGrams(max_length=2).release(posts, BUDGET),
        "hitters": vp.HeavyHitters(max_length=2).release(posts, BUDGET),
        "model": vp.Sequences(alphabet=["a", "b", "c"]).release(vp.read(visits, user="who", sequence="to"), BUDGET),
        "counts": words.count(posts, BUDGET),
        "top": words.top(posts, BUDGET, k=3),
        "found": vp.Sequences(alphabet="find").release(vp.read(visits, user="who", sequence="to"), BUDGET),
    }
    said = {"title": 'Words: "A" # 1', "operator": "Ann Example", "purpose": "Completions", "date": "2026-11-25"}
    return {name: each.with_metadata(dataset="Forum posts", **said) for name, each in made.items()}


def values(node):
    """Return all values in a record, without the names of the fields."""
    if isinstance(node, dict | list):
        return [value for each in (node.values() if isinstance(node, dict) else node) for value in values(each)]
    return [node]


NAMES = ["words", "phrases", "hitters", "model", "counts", "top", "found"]


@pytest.mark.parametrize("name", NAMES)
def test_a_record_conforms_to_the_schema(results, name):
    """A record has valid fields and the numbers of the guarantee.

    For counts and rankings, the guarantee includes the release.
    """
    result = results[name]
    record = yaml.safe_load(vp.exports.registry_record(result))
    REGISTRY.validate(record)
    assert not any(value in ("", None) for value in values(record))
    guarantee = result.total.adaptive
    loss = record["deployment"]["privacy_loss"]["privacy_parameters"]
    assert (loss["epsilon"], loss.get("delta", 0.0)) == (guarantee.epsilon, guarantee.delta)
    basic = record["deployment"]["basic"]
    assert (basic["name"], basic["intended_use"], basic["publication_date"]) == (
        'Words: "A" # 1',
        "Completions",
        "2026-11-25",
    )
    assert f"{len(result):,}" in basic["description"]


def test_invalid_records_do_not_conform_to_the_schema(results):
    """Records with a missing, an additional or an invalid field do not conform to the schema."""
    record = yaml.safe_load(vp.exports.registry_record(results["words"]))
    for change in (
        lambda basic: basic.pop("name"),
        lambda basic: basic.update(author="x"),
        lambda basic: basic.update(data_product_type="List"),
        lambda basic: basic.update(publication_date="1/1/2026"),
        lambda basic: basic.update(data_curators=[]),
    ):
        wrong = copy.deepcopy(record)
        change(wrong["deployment"]["basic"])
        assert not REGISTRY.is_valid(wrong)


def test_missing_metadata_is_marked(results):
    """A record marks the fields that the operator must complete or confirm."""
    bare = vp.Items().plan(BUDGET)
    text = vp.exports.registry_record(
        vp.Release.from_items(results["words"].grams["gram"].combine_chunks().flatten(), bare, bare.guarantee)
    )
    assert text.count('"not stated"  # complete or confirm') == 6
    REGISTRY.validate(yaml.safe_load(text))


@pytest.mark.parametrize("name", NAMES)
def test_the_checklist_contains_guarantee_data_set_purpose_and_ledger(results, name):
    """The checklist contains the guarantee, the data set, the purpose and the ledger."""
    text = vp.exports.checklist(results[name])
    assert text.count("## ") == 10
    assert text.count("- [ ] ") == 14
    total = results[name].total
    assert f"- {total.adaptive}, even if each budget was chosen after earlier results." in text
    assert f"If all budgets were fixed in advance: ({total.fixed.epsilon:g}, {total.fixed.delta:g})." in text
    assert "Digest of the folder (of `SHA256SUMS`): not saved yet" in text
    assert "- Data set: Forum posts. Purpose: Completions." in text
    assert "Ledger: not stated." in text
    if name == "phrases":
        assert "Written by one user: up to " in text


def test_documents_of_a_folder_cover_all_its_results(results, tmp_path):
    """For every result that is loaded, the documents contain the total of the folder and its digest."""
    results["words"].save(tmp_path / "words")
    results["counts"].save(tmp_path / "words")
    results["top"].save(tmp_path / "words")
    digest = verify(tmp_path / "words")["digest"]
    total = total_of([(results[name].guarantee, None) for name in ("words", "counts", "top")])
    for kind in (vp.Release, vp.Counts, vp.Top):
        loaded = vp.load(tmp_path / "words", kind)
        assert str(loaded.total) == str(total)
        assert f"- {total.adaptive}, even if" in vp.exports.checklist(loaded)
        assert digest in vp.exports.checklist(loaded)
        assert digest in vp.exports.registry_record(loaded)
    assert loaded.with_metadata(title="x").total != total


def test_a_result_that_is_not_private_is_rejected(results):
    """A result that is not private has no record and no checklist."""
    posts = vp.read(pl.DataFrame({"who": range(3000), "what": ["tea"] * 3000}), user="who", items="what")
    seeded = vp.Items().release(posts, BUDGET, seed=1)
    for document in (vp.exports.registry_record, vp.exports.checklist):
        with pytest.raises(vp.errors.InputError, match=r"NOT PRIVATE.*must describe a private result"):
            document(seeded)


def test_the_command_writes_both_files(results, tmp_path, capsys):
    """The command writes the record and the checklist for a release and for a model."""
    from voxpop.cli import main

    for name in ("words", "model"):
        results[name].save(tmp_path / name)
        for format, file in (("registry", "record.yaml"), ("checklist", "list.md")):
            path = tmp_path / f"{name}-{file}"
            assert main(["export", str(tmp_path / name), "--format", format, "-o", str(path)]) == 0
            assert path.stat().st_size > 1000
    assert "Wrote registry to" in capsys.readouterr().out
