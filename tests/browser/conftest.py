"""Fixtures for a headless Chromium and for reports to open in it.

The tests are skipped without Playwright or Chromium.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import voxpop as vp
from voxpop.mechanisms.ngrams.charges import LengthRun
from voxpop.privacy.planned import with_record
from voxpop.release.table import SCHEMA

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = ("chromium", "chromium-browser", "google-chrome")
SAID = {
    "title": "Phrases of the forum",
    "dataset": "Forum posts of 2026",
    "purpose": "Completions in the mobile keyboard",
    "operator": "Ann Example",
    "date": "2026-11-22",
}
PHRASES = {
    ("thank", "you", "for", "your", "help"),
    ("thank", "you", "for", "all"),
    ("thank", "you", "very", "much"),
    ("see", "you", "soon"),
    ("you", "found", "it"),
    ("𝔘", "ﬀ"),
    ("été", "à", "la"),
}


def closed(grams: Any) -> set[tuple[str, ...]]:
    """Return these grams with all their parts."""
    return {gram[i:j] for gram in grams for i in range(len(gram)) for j in range(i + 1, len(gram) + 1)}


def release_of(grams: Any, plan: Any, guarantee: Any = None, token_source: str = "words") -> vp.Release:
    """Return a release of these grams."""
    rows = sorted(grams, key=lambda gram: (len(gram), [token.encode() for token in gram]))
    table = pa.table({"gram": [list(row) for row in rows], "length": [len(row) for row in rows]}, schema=SCHEMA)
    return vp.Release(table, plan, guarantee or plan.guarantee, token_source)


def phrases_plan() -> Any:
    """Return a plan of phrases that contains the values of an executed run."""
    plan = vp.NGrams(max_length=5).plan(vp.Budget(4, 1e-7))
    later = [LengthRun(length, 2.0 * length, 20.0 * length, 1000, 9.0 * length) for length in range(2, 6)]
    first = plan.lengths[0]
    return with_record(plan, ran=(LengthRun(1, first.sigma, None, None, first.lowest_threshold), *later))


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Return a running browser."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make browser")
    path = os.environ.get("VOXPOP_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no chromium: apt-get install chromium, or set VOXPOP_CHROMIUM to its path")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the paths of saved reports by name."""
    home = tmp_path_factory.mktemp("reports")
    union = vp.Items(max_items_per_user=10).plan(vp.Budget(4, 1e-7))
    nasty = [
        "<img src=x onerror=alert(1)>",
        "=1+1",
        "New York",
        "evil\u202etxt",
        'quo"te',
        "</script>",
        "tea",
        "",
        "  ",
        "42",
    ]
    releases = {
        "phrases": release_of(closed(PHRASES), phrases_plan()),
        "items": release_of([(each,) for each in nasty], union, token_source="items"),
        "seeded": release_of([("tea",)], union, vp.Guarantee(4, 1e-7, private=False)),
        "empty": release_of([], union),
        "many": release_of(_many(), phrases_plan()),
    }
    for name, release in releases.items():
        release.save(home / name)
    signed = release_of(closed(PHRASES), phrases_plan(), vp.Guarantee(8, 1e-7))
    signed.with_metadata(**SAID).save(home / "signed")
    corpus = vp.read(_visits(), user="who", sequence="pages")
    model = vp.Sequences(max_length=5, max_gram=3, alphabet=["home", "news", "sport"]).release(corpus, vp.Budget(2))
    model.save(home / "sequences")
    return {name: home / name / "report.html" for name in (*releases, "signed", "sequences")}


def _many() -> set[tuple[str, ...]]:
    """Return more than 100,000 phrases."""
    tokens = [f"w{number * 2654435761 % 2**32:x}" for number in range(8000)]
    pairs = {(tokens[i % 8000], tokens[i * i * 31 % 8000]) for i in range(60_000)}
    threes = {(tokens[i % 8000], tokens[i * i * 31 % 8000], tokens[i * 7 % 8000]) for i in range(60_000)}
    return {(token,) for token in tokens} | pairs | threes


def _visits() -> Any:
    import polars as pl

    return pl.DataFrame({"who": range(3000), "pages": [["home", "news"], ["home"], ["sport", "home", "news"]] * 1000})


class Opened:
    """A page with its console messages, its errors and its requests."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def rows(self, box: str = "#list") -> list[str]:
        """Return the visible phrases, from the top."""
        script = "all => all.sort((a, b) => a.dataset.place - b.dataset.place).map(e => e.firstChild.textContent)"
        found: list[str] = self.page.eval_on_selector_all(f"{box} .item", script)
        return found

    def numbers(self, box: str = "#list") -> list[int]:
        """Return the values shown with the visible phrases."""
        script = "all => all.sort((a, b) => a.dataset.place - b.dataset.place).map(e => e.lastChild.textContent)"
        return [int(each.replace(",", "")) for each in self.page.eval_on_selector_all(f"{box} .item", script)]

    def offers(self) -> list[tuple[str, str, int]]:
        """Return the context, token and number of each completion shown."""
        parts = "['.before', '.token', '.number']"
        script = f"all => all.map(e => {parts}.map(part => e.querySelector(part)?.textContent || ''))"
        rows = self.page.eval_on_selector_all("#offers li[data-place]", script)
        return [(before, token, int(number.replace(",", ""))) for before, token, number in rows]


@pytest.fixture
def opened(chromium: Any, reports: dict[str, Path]) -> Iterator[Any]:
    """Return a function that opens a report.

    After the test, the fixture checks that the pages logged no message and sent no network request.
    """
    contexts, pages = [], []

    def open_report(name: str, **options: Any) -> Opened:
        settings = {"viewport": {"width": 1280, "height": 900}, "accept_downloads": True, **options}
        context = chromium.new_context(**settings)
        contexts.append(context)
        opened = Opened(context.new_page())
        pages.append(opened)
        opened.page.goto(reports[name].as_uri())
        opened.page.wait_for_selector("html[data-ready=yes]", state="attached")
        return opened

    yield open_report
    for each in pages:
        assert each.complaints == []
        assert [url for url in each.requests if not url.startswith(("file:", "blob:"))] == []
        assert len(each.requests) >= 1
    for context in contexts:
        context.close()
