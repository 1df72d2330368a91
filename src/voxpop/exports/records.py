"""A record for a public registry, and a checklist for the person who signs a release.

Both documents are generated from templates in this folder, the facts of a result and the operator's statements.
"""

import datetime
import json
import re
from functools import cache
from importlib import metadata, resources
from typing import TYPE_CHECKING

from voxpop.errors import InputError
from voxpop.privacy.budget import printable
from voxpop.privacy.guarantee import cautions, meaning
from voxpop.release.release import Release
from voxpop.release.report.page import story_of

if TYPE_CHECKING:
    from voxpop.release.result import Result

NOT_STATED = "not stated"
NOT_SAVED = "not saved yet; save the result, load the folder and create this document again"
CONFIRM = "  # complete or confirm"


def registry_record(result: "Result") -> str:
    """Return a draft record for the deployments registry of the OpenDP project, as YAML.

    The fields follow the schema in github.com/opendp/deployments-registry-data. Complete the marked lines, and submit
    the file to this repository as `deployments/NAME.yaml`.

    Args:
        result: Any result with a guarantee. Add the data set, the purpose and the operator with `with_metadata`.

    Raises:
        InputError: If the result is not private.
    """
    spent = result.total.adaptive
    delta = spent.delta
    # JSON strings are also YAML strings, but a number in YAML 1.1 needs a decimal point.
    number = re.sub(r"^(\d+)e", r"\1.0e", repr(delta))
    texts = {
        name: json.dumps(printable([text]), ensure_ascii=False) + (CONFIRM if text == NOT_STATED else "")
        for name, text in _facts(result).items()
    }
    numbers = {"epsilon": spent.epsilon, "delta": f"\n      delta: {number}" if delta else ""}
    return _template("registry.yaml").format_map({**texts, **numbers})


def checklist(result: "Result") -> str:
    """Return a checklist on the topics of NIST SP 800-226, as Markdown.

    Each topic lists the facts that follow from the result, and the conditions that only the operator can confirm.

    Args:
        result: Any result with a guarantee.

    Raises:
        InputError: If the result is not private.
    """
    return _template("checklist.md").format_map({name: markdown(text) for name, text in _facts(result).items()})


def markdown(text: str) -> str:
    r"""Return a one-line text that Markdown shows unchanged, without markup, links or HTML.

    Example:
        >>> print(markdown("a_b <c> [d](e)"))
        a\_b \<c\> \[d\](e)
    """
    return re.sub(r"([\\`*_\[\]<>&#|~!$])", r"\\\1", printable([text]))


def _facts(result: "Result") -> dict[str, str]:
    """Return the texts of the record and the checklist."""
    total, about, plan = result.total, result.metadata, result.plan.to_dict()
    guarantee = total.adaptive
    if not guarantee.private:
        raise InputError(f"{guarantee}. A document for approval must describe a private result. Remove the seed.")
    lengths = result.grams["length"].value_counts().to_pylist() if isinstance(result, Release) else []
    story = story_of(plan, {int(row["values"]): int(row["counts"]) for row in lengths})
    noun = story.noun[len(result) != 1] if lengths else "rows"
    product = f"{len(result):,} {noun} by {plan.get('mechanism', 'an unknown mechanism')}."
    cards = [*story.cards, *([("Users needed", *story.about)] if story.about[0] else [])]
    title = about.title or product.rstrip(".")
    stated = {name: str(getattr(about, name) or NOT_STATED) for name in ("operator", "purpose", "dataset", "ledger")}
    digest = NOT_SAVED if result._saved is None else result._saved.digest or NOT_SAVED
    return {
        **stated,
        "title": title,
        "slug": re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-"),
        "date": about.date or datetime.date.today().isoformat(),
        "product": product if digest == NOT_SAVED else f"{product} Digest of the folder: {digest}.",
        "kind": "Dataset" if isinstance(result, Release) else "Summary statistics",
        "variant": "Approximate DP" if guarantee.delta else "Pure DP",
        "neighbours": f"Adjacent data sets differ by {guarantee.neighbours}, with all rows.",
        "meaning": f"{total.even_if}. {meaning(guarantee)}",
        "fixed": f"{total.if_fixed[0].upper()}{total.if_fixed[1:]}. {total.reason}".rstrip(),
        "alone": str(result.guarantee),
        "digest": digest,
        "cautions": " ".join(cautions(guarantee)) or "none.",
        "model": "Federated" if guarantee.server_view else "Central",
        "trust": guarantee.server_view or "The operator has the raw data, and readers receive only the result.",
        "mechanism": f"Voxpop {metadata.version('voxpop')}, noise drawn with AES-256; the proof includes the effect of "
        "integers and floating point.",
        "proof": f"Proof: {story.proof or 'docs/privacy'}, by machine, certificate or hand, as "
        "docs/privacy/proved.md states; not audited outside the project.",
        "usefulness": " ".join(f"{name}: {number} ({note})." for name, number, note in cards) or "See the report.",
    }


@cache
def _template(name: str) -> str:
    return resources.files("voxpop.exports").joinpath(name).read_text(encoding="utf-8")
