"""Build the page from the template, style, scripts, words and grams.

The page is one file that makes no network requests. The story of a report depends only on the public numbers of its
plan.
"""

import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from importlib import metadata
from importlib.resources import files
from math import floor
from textwrap import wrap
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.kernels.arrays import Int64s
from voxpop.privacy.budget import table
from voxpop.privacy.composition import total_of
from voxpop.privacy.guarantee import (
    LARGE_DELTA,
    LARGE_EPSILON,
    SUPPORT,
    at_most,
    cautions,
    chance_at_most,
    factor,
    odds_after,
    people_covered,
)
from voxpop.reading import segmenting
from voxpop.reading.arrow import array_of, joined, numbers_of
from voxpop.release.registry import load_object, mechanism_called
from voxpop.release.report import numbers

if TYPE_CHECKING:
    from voxpop.privacy.composition import Total
    from voxpop.privacy.guarantee import Guarantee
    from voxpop.release.result import Result


def payload_of(grams: pa.Table, counts: Int64s | None = None) -> str:
    """Return the words and, for each length, the tree of beginnings of grams, as deflated JSON in base64.

    Args:
        grams: The table of a release.
        counts: The number of each gram, which is its count (at least 0), or 1 for a known item and 0 otherwise. If both
            exist, the number is twice the count plus 1 or 0. By default all numbers are 0.
    """
    words, flat = _numbered(grams["gram"])
    lengths = numbers_of(joined(grams["length"])).astype(np.int64)
    first, numbers = np.cumsum(lengths) - lengths, np.zeros(lengths.size, np.int64) if counts is None else counts
    # The index of each gram's beginning that is one token shorter, of shape (grams,). All grams start at the root.
    node, above, depths = np.zeros(lengths.size, np.int64), 1, []
    for depth in range(int(lengths.max(initial=0))):
        rows, ended = np.flatnonzero(lengths > depth), lengths == depth + 1
        keys = node[rows] * len(words) + flat[first[rows] + depth]
        distinct, node[rows] = np.unique(keys, return_inverse=True)
        parents, tokens = np.divmod(distinct, len(words))
        # Beginnings that are not grams have the number -1.
        own = np.full(distinct.size, -1, np.int64)
        own[node[ended]] = numbers[ended]
        depths.append([np.bincount(parents, minlength=above).tolist(), tokens.tolist(), own.tolist()])
        above = distinct.size
    content = json.dumps({"words": words, "depths": depths}, separators=(",", ":"))
    return b64encode(zlib.compress(content.encode(), 9)).decode()


def unpacked(page: bytes) -> bytes:
    """Return a page with grams as plain JSON, because compressed bytes depend on the version of zlib."""
    try:
        return re.sub(rb'(?<=id="grams">)[A-Za-z0-9+/=]+', lambda found: zlib.decompress(b64decode(found[0])), page)
    except (ValueError, zlib.error):
        return page


def _numbered(grams: Any) -> tuple[list[str], Int64s]:
    """Return the distinct tokens in the order of their bytes, and the index of every token."""
    coded = joined(grams).flatten().dictionary_encode()
    order = numbers_of(pc.array_sort_indices(coded.dictionary))
    numbers = np.empty(order.size, np.int64)
    numbers[order] = np.arange(order.size)
    words: list[str] = coded.dictionary.take(array_of(order)).to_pylist()
    return words, numbers[numbers_of(coded.indices)]


_WIDTH = 116
"""The number of characters of a line in the text of a plan."""
MOST_SHOWN = 500_000
SURE_BEFORE = ((1e-6, "1 in 1,000,000"), (1e-4, "1 in 10,000"), (1e-2, "1 in 100"), (0.5, "1 in 2"))
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
PATTERNS = {
    "ANY_IGNORED": segmenting.ANY_IGNORED,
    "USELESS_JOINER": segmenting.USELESS_JOINER,
    "ANY_WITHOUT_WIDTH": segmenting.ANY_WITHOUT_WIDTH,
    "DOTTED_I": segmenting.DOTTED_I,
    "URL": segmenting.URL,
    "ANY_APOSTROPHE": segmenting.ANY_APOSTROPHE,
    "ANY_UNSPACED": segmenting.ANY_UNSPACED,
    "WORD": segmenting.WORD,
}
"""The patterns of the tokenizer "words", which the scripts of the page use."""
CHARTS = "vendor/plot.min.js"
PLOT_STYLE = "vendor/plot.css"


def page_of(
    story: "Story",
    result: "Result",
    sizes: Mapping[int, int],
    grams: pa.Table,
    reading: str,
    counts: Int64s | None,
    checksums: Mapping[str, str],
    total: "Total | None" = None,
    known: Int64s | None = None,
) -> bytes:
    """Return the page of a story.

    Args:
        story: The content of the report.
        result: The result. The page shows its plan, its guarantee and the operator's statements.
        sizes: The number of grams of each length.
        grams: The table of the grams. The page lists the first 500,000 grams.
        reading: The description of the tokenization.
        counts: The count of each gram, at least 0, if counts were released.
        checksums: The checksums of the other files in the folder.
        total: The total of several results. By default, the page shows the total of this result if it was charged to a
            ledger.
        known: 1 for each gram that was on a public list and 0 for all other grams, if there is a list.
    """
    numbers = known if counts is None else counts if known is None else 2 * counts + known
    if total is None and result.metadata.ledger is not None:
        total = total_of([result._stated])
    guarantee, plan = result.guarantee, result.plan.to_dict()
    shown = grams.slice(0, MOST_SHOWN)
    script, charts, style = _script(), _asset(CHARTS), _asset("template/style.css")
    facts = {
        "grams": {
            "reading": reading,
            "shown": shown.num_rows,
            "counts": counts is not None,
            "known": known is not None,
        },
        "nouns": story.noun,
        "statement": str(guarantee),
        "private": guarantee.private,
        "keys": story.keys,
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
            cards=story.cards if guarantee.private else (),
            total=sum(sizes.values()),
            shown=shown.num_rows,
            counted=counts is not None,
            noun_with_article=f"{'an' if story.noun[0][0] in 'aeiou' else 'a'} {story.noun[0]}",
            sizes=sorted(sizes.items()),
            guarantee=guarantee,
            statement=str(guarantee),
            plan=plan,
            numbers=list(_numbers(plan)),
            checksums=checksums,
            version=metadata.version("voxpop"),
            about=result.metadata,
            cautions=cautions(guarantee),
            together=None if total is None else f"{total.even_if}; {total.if_fixed}. {total.reason}",
            large_epsilon=LARGE_EPSILON,
            large_delta=LARGE_DELTA,
            odds=_odds(guarantee),
            dictionary=reading == "words" and _needs_dictionary(shown),
            facts=json_for_html(facts),
            packed=payload_of(shown, None if numbers is None else numbers[:MOST_SHOWN]),
            style=style,
            charts=charts,
            script=script,
            policy=_policy([script, charts], [style, _asset(PLOT_STYLE)]),
        )
    )
    return page.encode()


def _needs_dictionary(grams: pa.Table) -> bool:
    """Return whether a dictionary segmented some of the words."""
    words = joined(grams["gram"]).flatten()
    return bool(pc.any(pc.match_substring_regex(words, f"[{segmenting.UNSPACED}]")).as_py())


def json_for_html(content: Any) -> str:
    """Return JSON that is safe inside a script element, because it cannot end the element or open a comment."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    """Return a content security policy that permits only these scripts and styles and no network requests."""
    allowed = {"script-src": scripts, "style-src": styles}
    hashed = "; ".join(f"{name} {' '.join(map(_hash, texts))}" for name, texts in allowed.items())
    return f"default-src 'none'; {hashed}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@lru_cache(maxsize=32)
def _asset(name: str) -> str:
    return files("voxpop.release.report").joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")


@lru_cache(maxsize=8)
def scripts(names: Sequence[str]) -> str:
    """Return the scripts of the page, with the patterns of the tokenizer inserted."""
    parts = "\n".join(_asset(f"script/{name}.js") for name in names)
    for name, pattern in PATTERNS.items():
        parts = parts.replace(f'"{{{name}}}"', json_for_html(pattern))
    return parts


@lru_cache(maxsize=1)
def _script() -> str:
    """Return all scripts as one, in a separate scope."""
    parts = scripts(SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}\n}})();\n'


@lru_cache(maxsize=1)
def _environment() -> Any:
    import jinja2  # only the page of a report needs it

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
    for function in (numbers.whole, numbers.plain, at_most, numbers.percent, numbers.one_in, factor):
        environment.filters[function.__name__] = function
    environment.filters["people_covered"] = people_covered
    return environment


def _odds(guarantee: "Guarantee") -> dict[str, Any]:
    """Return the posterior probabilities of an attacker who has all other data, as rows and as numbers in sentences."""
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if SUPPORT * delta >= 1.0:
        return {"rows": []}
    return {
        "rows": [(before, chance_at_most(odds_after(epsilon, delta, sure))) for sure, before in SURE_BEFORE],
        "support": f"1 in {floor(1 / (SUPPORT * delta)):,}" if delta else "",
    }


def _numbers(plan: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield the name and the value of every single number of a plan and of its passes. Tables are shown separately.

    Types of passes with several rows have tables.
    """
    passes = plan.get("passes", [])
    kinds = [row["pass"] for row in passes]
    single = [row for row in passes if kinds.count(row["pass"]) == 1]
    for start, row in [("", plan), *((f"{row['pass']}: ", row) for row in single)]:
        for name, value in row.items():
            nested = isinstance(value, list) and any(isinstance(each, dict) for each in value)
            if name != "pass" and not nested and not isinstance(value, dict):
                yield start + re.sub("_", " ", name), _cell(value)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(numbers.plain(each, 6) for each in value[:100])
    return numbers.plain(value, 6)


@final
@dataclass(frozen=True, slots=True)
class Grid:
    """A table of plans and reports.

    Attributes:
        title: The title above the table.
        head: The column names.
        rows: The cells of each row as text.
        note: The note below the table. In plans, each line of the note is a separate line.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def lines(self) -> list[str]:
        """Return the table as lines of a plan's text."""
        note = [part for line in self.note.splitlines() for part in wrap(line, _WIDTH)]
        return [self.title, *table([self.head, *self.rows]), *note]


@final
@dataclass(frozen=True, slots=True)
class Story:
    """The content of a report about one mechanism.

    Attributes:
        words: The name of the template with the sentences.
        noun: The name of a released object, in the singular and the plural.
        title: The text after the number of objects in the heading.
        kicker: The line above the heading.
        proof: The page of the documentation with the proof, or "".
        values: The numbers that the sentences contain.
        ranked: Whether the list is ordered by frequency.
        needed: The number of users needed if this number can be computed.
        about: A summary of the number of users needed and its assumptions.
        curves: The names and points of curves, which show the probability of release by number of users.
        curves_note: The assumptions of the curves.
        cards: The cards at the top, next to the guarantee. Each card has a title, a number and a note.
        costs: The parts of the budget, with `length`, `part` and `share`. The shares add up to 1.
        sessions: The data of the charts of sessions from `voxpop.mechanisms.sequences.describe`. Other mechanisms have
            none.
        summary: A table at the top that replaces the charts by length, if the mechanism has one.
        grids: The tables with the numbers of the plan.
        completes: Whether the page completes phrases.
        keys: The names of the columns of composite keys. Other items have no such columns.
    """

    words: str
    noun: tuple[str, str]
    title: str
    kicker: str
    proof: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    ranked: bool = False
    needed: Grid | None = None
    about: tuple[str, str] = ("", "")
    curves: Sequence[Mapping[str, Any]] = ()
    curves_note: str = ""
    cards: Sequence[tuple[str, str, str]] = ()
    costs: Sequence[Mapping[str, Any]] = ()
    sessions: Mapping[str, Any] = field(default_factory=dict)
    summary: Grid | None = None
    grids: Sequence[Grid] = ()
    completes: bool = True
    keys: Sequence[str] = ()


Sizes = Mapping[int, int]
"""The number of released grams of each length."""


def story_of(plan: Mapping[str, Any], sizes: Sizes) -> Story:
    """Return the story of a release.

    Args:
        plan: The public numbers of the plan, as its `to_dict` returns them.
        sizes: The number of released grams of each length.

    Returns:
        The story of the mechanism, or a general story if this version has no mechanism with these numbers.
    """
    mechanism = mechanism_called(str(plan.get("mechanism")))
    if mechanism is not None and mechanism.story is not None:
        with suppress(KeyError, TypeError, ValueError, IndexError):  # The numbers are from another version.
            story: Story = load_object(mechanism.story)(plan, sizes)
            return story
    single = max(sizes, default=1) == 1
    noun = ("item", "items") if single else ("phrase", "phrases")
    return Story("general.html", noun, "released", str(plan.get("mechanism", "Release")))
