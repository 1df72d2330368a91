"""Tests of the built documentation in a real browser. No content is cut off at any width.

Run `make docs` before these tests. The environment variable VOXPOP_SITE can name the folder of another site.
"""

import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

SITE = Path(os.environ.get("VOXPOP_SITE", Path(__file__).resolve().parents[2] / "out" / "site"))
CUT = """() => {
    const wide = document.documentElement.clientWidth, cut = [];
    if (document.documentElement.scrollWidth > wide) cut.push("the page");
    for (const each of document.querySelectorAll("article img, article table, article pre")) {
        let box = each;  // itself, or what scrolls around it
        for (let up = each; up && up !== document.body; up = up.parentElement)
            if (["auto", "scroll"].includes(getComputedStyle(up).overflowX)) { box = up; break; }
        const shown = (each.tagName === "IMG" ? each : box).getBoundingClientRect();
        if (shown.width && shown.right > wide + 1) cut.push(each.tagName);
    }
    return cut;
}"""
HITS = "all => all.slice(0, 3).map(each => each.getAttribute('href').split('?')[0])"


@pytest.fixture(scope="module")
def site():
    """Return the folder of the built site."""
    if not (SITE / "index.html").is_file():
        pytest.skip(f"no site in {SITE}: make docs")
    return SITE


@pytest.mark.parametrize("width", [360, 820, 1280])
def test_nothing_is_cut_off(chromium, site, width):
    """On every page, pictures are completely visible, and wide tables, plans and blocks of code scroll."""
    context = chromium.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    pages = [each for each in sorted(site.rglob("*.html")) if "_static" not in each.parts]
    assert len(pages) > 60
    cut = {}
    for each in pages:
        page.goto(each.as_uri())
        if found := page.evaluate(CUT):
            cut[str(each.relative_to(site))] = found
    context.close()
    assert cut == {}


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("epsilon", "guides/choosing.html"),
        ("limit", "guides/choosing.html"),
        ("ledger", "guides/ledger.html"),
        ("completions", "guides/completions.html"),
        ("report", "guides/report.html"),
        ("group-by", "guides/items.html"),
    ],
)
def test_search_finds_the_guide_first(chromium, site, asked, first):
    """Search lists guides before reference pages."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{(site / 'search.html').as_uri()}?q={asked}")
    page.wait_for_function("document.querySelectorAll('#search-results li').length > 2")
    assert page.eval_on_selector_all("#search-results li > a", HITS)[0] == first
    context.close()


def test_the_reference_links_to_the_proofs(site):
    """The reference page of the mechanisms links to the proof of each mechanism."""
    text = (site / "reference" / "README.html").read_text(encoding="utf-8")
    for proof in ("adaptive", "set-union", "ngrams", "heavy-hitters", "sequences"):
        assert f'href="../privacy/{proof}.html"' in text, proof
