"""Put the page together: template, style, scripts, words and grams in one file that asks the network for nothing."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from voxpop.release.report import words
from voxpop.release.report.payload import payload_of
from voxpop.release.report.stories import story_of
from voxpop.release.trie import GramTrie

if TYPE_CHECKING:
    from voxpop.privacy.guarantee import Guarantee
    from voxpop.release.release import Release
    from voxpop.release.report.story import Story

REPORT = "report.html"
MOST_SHOWN = 500_000
FALSE_ALARMS = (0.001, 0.01, 0.1)
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
    "theme",
    "start",
)
CHARTS = "vendor/plot.min.js"
PLOT_STYLE = "vendor/plot.css"


def report_of(release: "Release", checksums: Mapping[str, str]) -> bytes:
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
    return page_of(story_of(plan, sizes), release.guarantee, plan, sizes, (shape, packed), checksums)


def page_of(
    story: "Story",
    guarantee: "Guarantee",
    plan: Mapping[str, Any],
    sizes: Mapping[int, int],
    payload: tuple[dict[str, Any], str],
    checksums: Mapping[str, str],
) -> bytes:
    """Return the page of a story.

    Args:
        story: what is told.
        guarantee: what was promised.
        plan: every number of the plan.
        sizes: how many grams of each length there are.
        payload: the grams: what it takes to unpack them, and the text.
        checksums: of the files beside the page.
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
            false_alarms=FALSE_ALARMS,
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

    names = [path.name for path in files("voxpop.release.report").joinpath("template").iterdir()]
    pages = {name: _asset(f"template/{name}") for name in names if name.endswith(".html")}
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(pages),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    for function in (words.whole, words.plain, words.at_most, words.percent, words.percent_at_most, words.one_in):
        environment.filters[function.__name__] = function
    environment.filters["factor"] = words.factor
    environment.globals |= {"most_detected": words.most_detected, "most_accurate": words.most_accurate}
    return environment


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
