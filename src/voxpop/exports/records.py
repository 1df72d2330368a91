"""Documents for the person who signs a release: a record for a public registry, and a checklist.

Both are functions of the result and of the operator's statements. Entries that the operator must complete or confirm
are marked.
"""

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

from voxpop.errors import InputError
from voxpop.privacy.guarantee import Guarantee, cautions, meaning
from voxpop.release.release import Release
from voxpop.release.report.page import story_of
from voxpop.release.tally import Addition

if TYPE_CHECKING:
    from voxpop.release.result import Result

CONFIRM = "  # complete or confirm"
NOISE = "noise drawn with AES-256; the proof includes the effect of integers and floating point"
UNCOVERED = "running times, memory, logs, and the fact that a run was refused"


class Unconfirmed(str):
    """A text that the operator must complete or confirm."""


def registry_record(result: "Result") -> str:
    """Return a draft record for the deployments registry of the OpenDP project, as YAML.

    The fields follow the schema in github.com/opendp/deployments-registry-data. Complete the marked lines, and offer
    the file there as `deployments/NAME.yaml`.

    Args:
        result: any result with a guarantee. State the data set, the purpose and the operator with `with_metadata`.

    Raises:
        InputError: If the result is not private.
    """
    guarantee, about, plan = _guarantee(result), result.about, result.plan.to_dict()
    product, proof = _product(result)
    title = about.title or product
    parameters = {"epsilon": guarantee.epsilon, **({"delta": guarantee.delta} if guarantee.delta else {})}
    record = {
        "url_slug": Unconfirmed(re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")),
        "deployment": {
            "basic": {
                "name": title,
                "data_curators": [
                    {"data_curator_name": _said(about.operator), "data_curator_type": Unconfirmed("Industry")}
                ],
                "description": f"{product}.",
                "intended_use": _said(about.purpose),
                "data_product_type": "Dataset" if isinstance(result, Release) else "Summary statistics",
                "data_product_region": _said(""),
                "publication_date": Unconfirmed(about.date or datetime.date.today().isoformat()),
            },
            "dp_variant": {
                "variant_name": "Approximate DP" if guarantee.delta else "Pure DP",
                "data_domain": _said(about.dataset),
                "unprotected_quantities": Unconfirmed(f"None in the files. The guarantee does not cover {UNCOVERED}."),
            },
            "privacy_loss": {
                "privacy_unit": "User",
                "privacy_unit_details": f"Adjacent data sets differ by {guarantee.neighbours}, with all rows.",
                "privacy_parameters": parameters,
                "privacy_parameters_details": f"{guarantee}. {meaning(guarantee)}",
            },
            "deployment_model": {
                "model_name": "Federated" if guarantee.seen else "Central",
                "trust_assumptions": f"The curator holds the raw data. {guarantee.seen}".strip(),
                "release_type": Unconfirmed("One release"),
                "data_source_type": Unconfirmed("Static"),
                "access_type": "Non-interactive",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": Unconfirmed("All settings were chosen without the data."),
                "mechanisms": f"{plan.get('mechanism', 'unknown')}, {NOISE}. Voxpop {_version()}.",
                "composition": _said(about.ledger),
                "post_processing": "None.",
                "justification": f"Proof: {proof}. The proof was not audited outside the project.",
                "utility": " ".join(_usefulness(result)),
            },
            "administrative": {
                "status": "Draft",
                "registry_authors": [_said(about.operator)],
                "tier": 2,
            },
        },
    }
    return "\n".join(_yaml(record)) + "\n"


def checklist(result: "Result") -> str:
    """Return a checklist on the topics of NIST SP 800-226, as Markdown.

    Each topic has the facts that follow from the result, and the conditions that only the operator can confirm.

    Args:
        result: any result with a guarantee.

    Raises:
        InputError: If the result is not private.
    """
    guarantee, about = _guarantee(result), result.about
    product, proof = _product(result)
    topics = [
        (
            "Privacy parameters",
            [f"{guarantee}.", meaning(guarantee), *cautions(guarantee)],
            ["The policy allows them."],
        ),
        (
            "Unit of privacy",
            [f"Adjacent data sets differ by {guarantee.neighbours}, with all rows."],
            ["No person has several user ids in the data.", "No row is about several people."],
        ),
        (
            "Several releases",
            [f"Ledger: {about.ledger or 'none was charged'}."],
            ["All releases about the same people are in the same ledger, also those of other teams and software."],
        ),
        (
            "Algorithms and correctness",
            [f"{product}.", f"Proof: {proof}, not audited outside the project.", f"Made with Voxpop {_version()}."],
            ["`voxpop verify` finds no change.", "All settings were chosen without the data."],
        ),
        ("Utility", _usefulness(result), ["The result is good enough for its purpose."]),
        (
            "Bias",
            ["Items of few users are missing more often than items of many, so small groups are underrepresented."],
            ["The use of the result does not harm small groups.", "The content was checked."],
        ),
        (
            "Trust model",
            [guarantee.seen or "Central: the operator holds the raw data, and readers receive the result only."],
            ["Everybody with access to the raw data may have it."],
        ),
        (
            "Implementation and side channels",
            [f"Noise: {NOISE}.", f"Not covered: {UNCOVERED}."],
            ["No logs, running times, raw counts or drafts are published."],
        ),
        (
            "Security and access control",
            ["Saved data sets, work files and ledgers can be read by their owner only."],
            ["The raw data and the ledger are protected and backed up."],
        ),
        (
            "Data collection exposure",
            [f"Data set: {_said(about.dataset)}.", f"Purpose: {_said(about.purpose)}."],
            ["Only necessary data was collected.", "Raw data is deleted when it is no longer needed."],
        ),
    ]
    lines = [f"# Checklist on the topics of NIST SP 800-226: {about.title or product}"]
    for topic, facts, conditions in topics:
        lines += ["", f"## {topic}", "", *(f"- {each}" for each in facts), *(f"- [ ] {each}" for each in conditions)]
    lines += ["", "Name, date, signature:", ""]
    return "\n".join(lines)


def _guarantee(result: "Result") -> Guarantee:
    """Return the guarantee of everything that a result publishes.

    Raises:
        InputError: If there is none.
    """
    guarantee = result.with_release if isinstance(result, Addition) else result.guarantee
    if not guarantee.private:
        raise InputError(
            f"{guarantee}. A document for its approval must be about a private result: leave out the seed."
        )
    return guarantee


def _product(result: "Result") -> tuple[str, str]:
    """Return what was released, and the page of the proof."""
    plan = result.plan.to_dict()
    story = story_of(plan, _sizes(result))
    name = str(plan.get("mechanism", "unknown mechanism"))
    noun = story.noun[len(result) != 1] if isinstance(result, Release) else "rows"
    return f"{len(result):,} {noun} by {name}", story.proof or "docs/privacy"


def _usefulness(result: "Result") -> list[str]:
    story = story_of(result.plan.to_dict(), _sizes(result))
    cards = [*story.cards, *([("Users needed", *story.about)] if story.about[0] else [])]
    return [f"{title}: {number} ({note})." for title, number, note in cards] or ["The report states the errors."]


def _sizes(result: "Result") -> dict[int, int]:
    """Return the number of released grams of each length."""
    if not isinstance(result, Release):
        return {}
    rows = result.grams["length"].value_counts().to_pylist()
    return {int(row["values"]): int(row["counts"]) for row in rows}


def _said(text: str) -> str:
    return text or Unconfirmed("not stated")


def _version() -> str:
    return metadata.version("voxpop")


def _yaml(value: Any, indent: str = "") -> list[str]:
    """Return a value as lines of YAML. Strings are those of JSON, which YAML contains."""
    if isinstance(value, Mapping):
        return [line for name, each in value.items() for line in _entry(f"{indent}{name}:", each, indent)]
    lines = []
    for each in value:
        first, *rest = _yaml(each, f"{indent}  ") if isinstance(each, Mapping) else [f"{indent}  {_scalar(each)}"]
        lines += [f"{indent}- {first.strip()}", *rest]
    return lines


def _entry(name: str, value: Any, indent: str) -> list[str]:
    if isinstance(value, Mapping) or (isinstance(value, Sequence) and not isinstance(value, str)):
        return [name, *_yaml(value, f"{indent}  ")]
    return [f"{name} {_scalar(value)}"]


def _scalar(value: str | float) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) + (CONFIRM if isinstance(value, Unconfirmed) else "")
    text = repr(value)
    return text if "." in text or "e" not in text else text.replace("e", ".0e")  # YAML 1.1 needs the point
