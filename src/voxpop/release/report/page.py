"""Put the page together: template, style, scripts, words and grams in one file that asks the network for nothing."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from math import floor
from typing import TYPE_CHECKING, Any

from voxpop.privacy.in_words import (
    LARGE_DELTA,
    LARGE_EPSILON,
    SUPPORT,
    cautions,
    chance_at_most,
    least_accused,
    odds_after,
    people_covered,
)
from voxpop.release.about import NOTHING_SAID, About
from voxpop.release.report import words
from voxpop.release.report.payload import payload_of
from voxpop.release.report.stories import story_of
from voxpop.release.trie import GramTrie

if TYPE_CHECKING:
    from voxpop.privacy.guarantee import Guarantee
    from voxpop.release.released import Released
    from voxpop.release.report.story import Story

REPORT = "report.html"
MOST_SHOWN = 500_000
SURE_BEFORE = ((1e-6, "1 in 1,000,000"), (1e-4, "1 in 10,000"), (1e-2, "1 in 100"), (0.5, "1 in 2"))
A_MILLION = 1_000_000
SCRIPTS = (
    "payload",
    "cutting",
    "trie",
    "completing",
    "visible",
    "rows",
    "list",
    "saving",
    "explorer",
    "completions",
    "charts",
    "sessions",
    "theme",
    "printing",
    "start",
)
CHARTS = "vendor/plot.min.js"
PLOT_STYLE = "vendor/plot.css"


def report_of(release: "Released", checksums: Mapping[str, str]) -> bytes:
    """Return the page of a release; equal releases give equal bytes.

    Args:
        release: to be signed off.
        checksums: of the files beside the page.
    """
    lengths = release.grams["length"].value_counts().to_pylist()
    sizes = {int(row["values"]): int(row["counts"]) for row in lengths}
    plan = release.plan.to_dict()
    shown = release.grams.slice(0, MOST_SHOWN)
    shape, packed = payload_of(GramTrie.of(shown))
    shape |= {"reading": release.reading, "shown": shown.num_rows}
    story = story_of(plan, sizes)
    return page_of(story, release.guarantee, plan, sizes, (shape, packed), checksums, release.about)


def page_of(
    story: "Story",
    guarantee: "Guarantee",
    plan: Mapping[str, Any],
    sizes: Mapping[int, int],
    payload: tuple[dict[str, Any], str],
    checksums: Mapping[str, str],
    about: About = NOTHING_SAID,
) -> bytes:
    """Return the page of a story.

    Args:
        story: what is told.
        guarantee: what was promised.
        plan: every number of the plan.
        sizes: how many grams of each length there are.
        payload: the grams: what it takes to unpack them, and the text.
        checksums: of the files beside the page.
        about: what the operator says of the release.
    """
    from voxpop.version import installed_version

    shape, packed = payload
    script, charts, style = _script(), _asset(CHARTS), _asset("template/style.css")
    facts = {
        "grams": shape,
        "nouns": story.noun,
        "statement": str(guarantee),
        "private": guarantee.private,
        "lengths": [{"length": length, "released": count} for length, count in sorted(sizes.items())],
        "curves": story.curves,
        "costs": story.costs,
        "sessions": {name: story.sessions[name] for name in ("starts", "lengths", "paths") if name in story.sessions},
    }
    page: str = (
        _environment()
        .get_template("page.html")
        .render(
            story=story,
            total=sum(sizes.values()),
            shown=shape["shown"],
            counted=shape["counts"],
            sizes=sorted(sizes.items()),
            guarantee=guarantee,
            statement=str(guarantee),
            plan=plan,
            numbers=list(_numbers(plan)),
            checksums=checksums,
            version=installed_version(),
            about=about,
            cautions=cautions(guarantee),
            large_epsilon=LARGE_EPSILON,
            large_delta=LARGE_DELTA,
            odds=_odds(guarantee),
            facts=json_for_html(facts),
            packed=packed,
            style=style,
            charts=charts,
            script=script,
            policy=_policy([script, charts], [style, _asset(PLOT_STYLE)]),
        )
    )
    return page.encode()


def json_for_html(content: Any) -> str:
    """Return JSON that is safe inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """Return a policy that runs these scripts and styles, and lets nothing be loaded or sent."""
    allowed = {"script-src": scripts, "style-src": styles}
    hashed = "; ".join(f"{name} {' '.join(map(_hash, texts))}" for name, texts in allowed.items())
    return f"default-src 'none'; {hashed}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@lru_cache(maxsize=32)
def _asset(name: str) -> str:
    return files("voxpop.release.report").joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")


@lru_cache(maxsize=1)
def _script() -> str:
    """Return our scripts as one, each in the order of `SCRIPTS`, in a scope of its own."""
    parts = "\n".join(_asset(f"script/{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}\n}})();\n'


@lru_cache(maxsize=1)
def _environment() -> Any:
    import jinja2

    from voxpop.release.report.compiled import kept_templates

    names = [path.name for path in files("voxpop.release.report").joinpath("template").iterdir()]
    pages = {name: _asset(f"template/{name}") for name in names if name.endswith(".html")}
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(pages),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        bytecode_cache=kept_templates(),
    )
    for function in (words.whole, words.plain, words.at_most, words.percent, words.one_in, words.factor):
        environment.filters[function.__name__] = function
    environment.filters["people_covered"] = people_covered
    return environment


def _odds(guarantee: "Guarantee") -> dict[str, Any]:
    """Return what somebody who knows everything else may come to think, in rows and numbers for the sentences."""
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if SUPPORT * delta >= 1.0:
        return {"rows": []}
    return {
        "rows": [(before, chance_at_most(odds_after(epsilon, delta, sure))) for sure, before in SURE_BEFORE],
        "support": f"1 in {floor(1 / (SUPPORT * delta)):,}" if delta else "",
        "accused": floor(A_MILLION * least_accused(epsilon, delta, 0.5)),
    }


def _numbers(plan: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield every single number of a plan by its name; tables are shown as such."""
    for name, value in plan.items():
        nested = isinstance(value, list) and any(isinstance(each, dict) for each in value)
        if not nested and not isinstance(value, dict):
            yield re.sub("_", " ", name), _cell(value)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(words.plain(each, 6) for each in value[:100])
    return words.plain(value, 6)
