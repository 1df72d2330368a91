"""Tests of the report in a real browser, including search, order, downloads, keyboard, themes and completions.

The fixture `opened` fails a test if its page logged a message or requested anything except its own file.
"""

import csv
import json
import re
import shutil
import subprocess
import time
from collections import Counter

import pytest

import voxpop as vp
from voxpop.privacy.budget import words_first
from voxpop.release.report.page import scripts

pytestmark = pytest.mark.browser


def count(opened):
    return opened.page.inner_text("#count")


def test_all_released_phrases_are_listed(opened, reports):
    """The list contains the grams of the release in canonical order. The page shows the number of grams."""
    report = opened("phrases")
    release = vp.load(reports["phrases"].parent)
    assert count(report) == f"{len(release)} phrases"
    assert report.rows()[:5] == [" ".join(gram) for gram in release.each_gram()][:5]
    assert report.page.inner_text("h1").startswith(f"{len(release)} phrases")


@pytest.mark.parametrize(
    ("button", "typed", "fits"),
    [
        ("anywhere", "You F", lambda text: "you f" in text),
        ("at the start", "you ", lambda text: text.startswith("you ")),
        ("whole tokens", "you  for", lambda text: " you for " in f" {text} "),
        ("anywhere", "ÉTÉ", lambda text: "été" in text),
        ("anywhere", "nowhere to be found", lambda _: False),
    ],
)
def test_the_page_can_be_searched(opened, reports, button, typed, fits):
    """The search matches the typed text in the selected way, and shows the number of hits."""
    report = opened("phrases")
    expected = [" ".join(gram) for gram in vp.load(reports["phrases"].parent) if fits(" ".join(gram))]
    report.page.click(f"text={button}")
    report.page.fill("#search", typed)
    assert report.rows() == expected[: len(report.rows())]
    assert count(report).startswith(f"{len(expected)} of ")
    assert report.page.eval_on_selector("#count", "e => e.getAttribute('aria-live')") == "polite"
    if not expected:
        assert "may have any number of users" in report.page.inner_text("#list")


def test_lengths_and_first_tokens_filter_the_list(opened, reports):
    """The list can be filtered by length and by first token, and both filters can be removed."""
    report = opened("phrases")
    grams = list(vp.load(reports["phrases"].parent))
    report.page.click("#lengths button:text-is('3')")
    assert report.rows() == [" ".join(gram) for gram in grams if len(gram) == 3]
    firsts = dict(zip(report.rows("#first-list"), report.numbers("#first-list"), strict=True))
    assert firsts == Counter(gram[0] for gram in grams if len(gram) == 3)
    report.page.click("#first-list .item:has-text('you')")
    assert report.rows() == [" ".join(gram) for gram in grams if len(gram) == 3 and gram[0] == "you"]
    report.page.click("#chosen-first")
    report.page.click("text=all lengths")
    assert count(report) == f"{len(grams)} phrases"


def test_the_table_can_be_sorted(opened, reports):
    """The order A to Z sorts by tokens, and a second click reverses it.

    In the order by continuations, the phrase that begins the largest number of other phrases is first.
    """
    report = opened("phrases")
    grams = list(vp.load(reports["phrases"].parent))
    ordered = [" ".join(gram) for gram in sorted(grams, key=lambda gram: [token.encode() for token in gram])]
    report.page.click("[data-sort=text]")
    assert report.rows() == ordered[: len(report.rows())]
    report.page.click("[data-sort=text]")
    assert report.rows() == ordered[::-1][: len(report.rows())]
    report.page.click("[data-sort=longer]")
    begun = {gram: sum(other[: len(gram)] == gram for other in grams) - 1 for gram in grams}
    assert report.rows()[0] == " ".join(max(grams, key=lambda gram: begun[gram]))


def test_the_displayed_phrases_can_be_downloaded(opened, reports, tmp_path):
    """The displayed phrases are saved as CSV that spreadsheets do not evaluate, and unchanged as JSON and text."""
    report = opened("items")
    items = [item for (item,) in words_first(vp.load(reports["items"].parent).each_gram())]
    saved = {}
    for name in ("csv", "json", "text"):
        with report.page.expect_download() as download:
            report.page.click(f"#save-{name}")
        saved[name] = tmp_path / download.value.suggested_filename
        download.value.save_as(saved[name])
    assert [path.name for path in saved.values()] == ["items.csv", "items.json", "items.txt"]
    with saved["csv"].open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["phrase"] for row in rows] == [f"'{item}" if item.startswith("=") else item for item in items]
    content = json.loads(saved["json"].read_text(encoding="utf-8"))
    assert content["grams"] == [[item] for item in items]
    assert content["statement"] == "(4, 1e-07)-DP, one user added or removed"
    assert saved["text"].read_text(encoding="utf-8").split("\n") == items
    report.page.fill("#search", "tea")
    with report.page.expect_download() as download:
        report.page.click("#save-json")
    download.value.save_as(tmp_path / "one.json")
    assert json.loads((tmp_path / "one.json").read_text(encoding="utf-8"))["grams"] == [["tea"]]


def test_markup_and_control_characters_are_shown_as_text(opened):
    """Markup is shown as text, and control characters that change the text direction are shown as escapes."""
    report = opened("items")
    assert "<img src=x onerror=alert(1)>" in report.rows()
    assert "evilU+202Etxt" in report.rows()
    assert report.page.locator("#list img").count() == 0


def test_the_page_works_with_the_keyboard(opened):
    """The slash key starts a search, arrows move the selection, Enter copies and Escape clears.

    The first press of Tab focuses the link that skips to the report.
    """
    report = opened("phrases", permissions=["clipboard-read", "clipboard-write"])
    page = report.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("thank you")
    shown = report.rows()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.id") == "list"
    page.keyboard.press("ArrowDown")
    chosen = page.eval_on_selector("#list", "e => document.getElementById(e.getAttribute('aria-activedescendant'))")
    assert chosen is not None
    assert page.inner_text("#picked-phrase") == shown[1]
    page.keyboard.press("Enter")
    page.wait_for_selector("#told:text-is('Copied.')", state="attached")
    assert page.evaluate("navigator.clipboard.readText()") == shown[1]
    page.keyboard.press("End")
    assert page.inner_text("#picked-phrase") == shown[-1]
    page.focus("#search")
    page.keyboard.press("Escape")
    assert page.input_value("#search") == ""


@pytest.mark.parametrize("system", ["light", "dark"])
def test_the_page_has_a_light_and_a_dark_theme(opened, system):
    """Colours follow the system until the user chooses a theme. The choice is saved."""
    page = opened("phrases", color_scheme=system).page
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = "rgb(252, 251, 248)", "rgb(20, 23, 26)"
    assert page.evaluate(ground) == {"light": light, "dark": dark}[system]
    seen = []
    for _ in range(3):
        page.click("#theme")
        seen.append((page.inner_text("#theme span"), page.evaluate(ground)))
    assert seen[:2] == [("light", light), ("dark", dark)]
    assert seen[2][0] == "auto"
    page.click("#theme")
    page.reload()
    assert page.inner_text("#theme span") == "light"


PROMPTS = [
    "thank you",
    "",
    "Thank you FOR",
    "thank you fo",
    "you f",
    "zebra",
    "zebra you",
    "see you so",
    "été à ",
    "v",
    "𝔘 ",
]


def test_completions_equal_those_of_the_library(opened, reports):
    """The completions box shows the tokens, contexts, numbers and order that `Release.complete` returns."""
    report = opened("phrases")
    release = vp.load(reports["phrases"].parent)
    for prompt in PROMPTS:
        report.page.fill("#prompt", prompt)
        expected = [(" ".join(each.context), each.token, each.phrases) for each in release.complete(prompt, 12)]
        assert report.offers() == expected, prompt


def test_completions_of_many_phrases_equal_those_of_the_library(opened, reports):
    """Completions of 100,000 phrases also equal the results of `Release.complete`."""
    report = opened("many")
    release = vp.load(reports["many"].parent)
    grams = list(release)
    for gram in grams[:: len(grams) // 25]:
        for prompt in (" ".join(gram), " ".join(gram)[:-2], f"{gram[0]} {gram[-1]}"):
            report.page.fill("#prompt", prompt)
            expected = [(" ".join(each.context), each.token, each.phrases) for each in release.complete(prompt, 12)]
            assert report.offers() == expected, prompt


TYPED = """() => {
    %s
    const one = { words: ["don't"], size: 1, roots: 1, token: [0], parent: [-1] };
    const tree = { ...one, released: [true], length: [1], first: [1], last: [1] };
    const choices = { match: "contains", lengths: new Set(), first: -1, sort: "text", turned: false };
    const asked = { ...choices, query: "DON\u2019T" };
    const { tokens, open } = cutPrompt("\u2018So\u2019 I don\u2019t", "words", new Map());
    return [tokens, open, new Rows(tree).matching(asked).nodes.length];
}"""


def test_apostrophes_typed_on_phones_match(opened):
    """A prompt is tokenized like the texts, and a search finds a word typed with either kind of apostrophe."""
    assert opened("phrases").page.evaluate(TYPED % scripts(("cutting", "rows"))) == [["so", "i", "don't"], True, 1]


def test_the_keyboard_selects_and_inserts_completions(opened):
    """Enter inserts the first completion, and Tab inserts the completion that the arrow keys selected.

    The beginning of a word is completed.
    """
    page = opened("phrases").page
    page.fill("#prompt", "Thank y")
    page.press("#prompt", "Enter")
    assert page.input_value("#prompt") == "thank you "
    page.press("#prompt", "ArrowDown")
    page.press("#prompt", "ArrowDown")
    assert page.eval_on_selector("#offer-1", "e => e.getAttribute('aria-selected')") == "true"
    page.press("#prompt", "Tab")
    assert page.input_value("#prompt") == "thank you very "
    page.click("#offer-0")
    assert page.input_value("#prompt") == "thank you very much "
    page.fill("#search", "you for")
    page.click("#list .item >> nth=0")
    page.click("#complete-one")
    assert page.input_value("#prompt") == "you for "
    assert page.evaluate("document.activeElement.id") == "prompt"


ORPHANS = """() => [".cards", ".columns"].filter(name => {
    const rows = new Map();
    for (const each of document.querySelector(name).children) {
        const top = Math.round(each.getBoundingClientRect().top);
        rows.set(top, (rows.get(top) || 0) + 1);
    }
    return new Set(rows.values()).size > 1;
})"""


@pytest.mark.parametrize("name", ["phrases", "items", "sequences", "seeded", "empty", "signed"])
def test_no_page_scrolls_horizontally(opened, name):
    """At any width, no kind of report scrolls horizontally, and all rows of cards have the same number of cards.

    Every button and field has an accessible name.
    """
    page = opened(name).page
    for width in (1600, 1280, 1024, 900, 820, 768, 600, 480, 390, 360, 320):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(50)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate(ORPHANS) == [], width
    named = "all => all.every(e => !e.offsetParent || e.getAttribute('aria-label') || e.textContent.trim())"
    assert page.eval_on_selector_all("button", named)
    assert page.eval_on_selector_all("input", "all => all.every(e => e.labels.length > 0)")


@pytest.mark.parametrize("name", ["phrases", "items", "sequences", "signed"])
def test_no_column_is_truncated_in_print(opened, name):
    """Tables that scroll on a screen fit between the margins of A4, because paper does not scroll."""
    page = opened(name).page
    page.set_viewport_size({"width": 680, "height": 960})  # A4 without its margins, in CSS pixels
    page.emulate_media(media="print")
    tables = page.eval_on_selector_all(".scroll", "all => all.map(e => [e.scrollWidth, e.clientWidth])")
    assert tables
    assert all(wide <= room for wide, room in tables)


def test_words_are_listed_before_punctuation(opened):
    """Items that begin with a letter are first, then numbers, then other items. Blanks are visible."""
    report = opened("items")
    shown = report.rows()
    assert shown[0][0].isalpha()
    assert shown.index("tea") < shown.index("42") < shown.index("=1+1")
    assert {"empty", "U+0020U+0020"} <= {*shown}
    report.page.click("[data-sort=text]")
    assert report.rows() == shown[::-1]


def test_a_search_scrolls_to_its_result(opened):
    """At any scroll position, typing after `/` shows the search field and the first five rows of the list."""
    page = opened("phrases", viewport={"width": 1280, "height": 620}).page
    for scroll in (0, 100_000):
        page.evaluate(f"scrollTo(0, {scroll})")
        page.keyboard.press("/")
        page.keyboard.type("thank")
        box = page.locator("#search").bounding_box()
        fifth = page.locator("#list .item >> nth=4").bounding_box()
        assert box["y"] > 50
        assert fifth["y"] + fifth["height"] <= 620
        page.press("#search", "Escape")
        page.evaluate("document.activeElement.blur()")


def test_a_search_filters_the_list_of_first_tokens(opened, reports):
    """The list of first tokens counts the phrases that match the search, and omits tokens without such phrases."""
    report = opened("phrases")
    report.page.fill("#search", "you")
    fits = [gram for gram in vp.load(reports["phrases"].parent) if "you" in " ".join(gram)]
    firsts = dict(zip(report.rows("#first-list"), report.numbers("#first-list"), strict=True))
    assert firsts == Counter(gram[0] for gram in fits)


def test_the_legend_of_the_budget_lists_every_bar(opened):
    """Every part of the budget in the legend has a bar, and every bar is in the legend."""
    page = opened("phrases").page
    names = page.eval_on_selector_all(".legend .swatch", "all => all.map(e => e.className.replace('swatch ', ''))")
    assert sorted(names) == ["forecast", "vote"]


def test_a_signed_report_shows_the_statements_of_the_operator(opened):
    """The operator's statements are at the top and above the signature.

    The warning about a large epsilon is amber.
    """
    page = opened("signed").page
    assert page.inner_text("h1").startswith("Phrases of the forum")
    assert "Ann Example" in page.inner_text("dl.about")
    assert "Phrases of the forum" in page.inner_text(".signature")
    assert "Epsilon 8 is large" in page.inner_text(".caution")
    amber = page.eval_on_selector(".statement", "e => getComputedStyle(e).color")
    assert amber == "rgb(138, 75, 8)"


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="no pdftotext: apt-get install poppler-utils")
def test_the_page_can_be_printed(opened, tmp_path):
    """The printed report has A4 pages and shows all settings. The signature is on the same page as its table.

    No heading is the last line of a page.
    """
    page = opened("signed").page
    page.wait_for_selector("#chart-curves svg", state="attached")
    page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    info = subprocess.run(["pdfinfo", tmp_path / "report.pdf"], capture_output=True, text=True, check=True).stdout
    assert "(A4)" in info
    text = subprocess.run(
        ["pdftotext", "-layout", tmp_path / "report.pdf", "-"], capture_output=True, check=True
    ).stdout
    pages = [each.strip("\n").splitlines() for each in text.decode().split("\f") if each.strip()]
    assert len(pages) <= 8
    assert all(
        lines[-1].strip().replace(" ", "") == f"{number}/{len(pages)}" for number, lines in enumerate(pages, start=1)
    )
    pages = [lines[:-1] for lines in pages]
    headings = {each.strip() for each in page.locator("h2, h3").all_inner_texts()}
    assert len(headings) > 8
    assert all([line for line in lines if line.strip()][-1].strip() not in headings for lines in pages)
    assert any(re.search(r"max length +5$", line) for lines in pages for line in lines)
    assert page.eval_on_selector_all(".chart svg", "all => all.map(e => +e.getAttribute('width'))") != [470] * 3
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.eval_on_selector_all(".chart svg", "all => all.map(e => +e.getAttribute('width'))") == [470] * 3
    [last] = [lines for lines in pages if any("Signature" in line for line in lines)]
    assert any(line.strip() == "Signature" for line in last)
    assert any("release.parquet" in line for line in last)


@pytest.mark.skipif(shutil.which("pdftotext") is None, reason="no pdftotext: apt-get install poppler-utils")
@pytest.mark.parametrize("name", ["phrases", "items", "empty", "many", "sequences"])
def test_no_printed_page_is_nearly_empty(opened, tmp_path, name):
    """Text or charts fill more than half of every page except the last, and phrases are printed."""
    page = opened(name).page
    page.wait_for_timeout(1000)
    page.pdf(path=tmp_path / "report.pdf", prefer_css_page_size=True)
    call = ["pdftotext", "-bbox-layout", tmp_path / "report.pdf", "-"]
    sheets = subprocess.run(call, capture_output=True, check=True, text=True).stdout.split("<page ")[1:]
    filled = []
    for sheet in sheets:
        height = float(re.search(r'height="([\d.]+)"', sheet)[1])
        ends = [float(end) for end in re.findall(r'<word [^>]*yMax="([\d.]+)"', sheet)]
        filled.append(max(end for end in ends if end < height - 50) / height)
    assert min(filled[:-1]) > 0.5, filled
    assert filled[-1] > 0.2, filled
    if name in ("phrases", "items", "many"):
        printed = page.inner_text("#printed") if page.is_visible("#printed") else page.text_content("#printed")
        words = re.findall(r"<word [^>]*>([^<]+)</word>", "".join(sheets))
        first = printed.split(" · ")[0].strip().split()[-1]
        assert first in words


def test_charts_are_drawn(opened):
    """There is a bar for every length and every part of the budget, and a line for every length with one threshold."""
    page = opened("phrases").page
    page.wait_for_selector("#chart-curves svg g[aria-label=line]", state="attached")
    assert page.locator("#chart-lengths svg g[aria-label=bar] > *").count() == 5
    assert page.locator("#chart-costs svg g[aria-label=bar] > *").count() >= 9
    assert page.locator("#chart-curves svg g[aria-label=line] path").count() == 4
    assert page.locator(".chart[role=img][aria-label]").count() == 3


def test_a_page_of_charts_contains_nothing_else(opened, reports, tmp_path):
    """The page that `charts` returns shows only the charts and their tables."""
    model = vp.load(reports["sequences"].parent)
    model.charts().save(tmp_path / "charts.html")
    page = opened("sequences").page
    page.goto((tmp_path / "charts.html").as_uri())
    page.wait_for_selector("#chart-starts svg")
    shown = page.eval_on_selector_all("main > *, .bar, footer", "all => all.filter(e => e.offsetParent).map(e => e.id)")
    assert set(shown) == {"sessions", "pictures"}


@pytest.mark.parametrize("name", ["items", "empty", "phrases", "sequences"])
def test_charts_fill_their_frame_in_a_notebook(chromium, reports, tmp_path, name):
    """The charts fill at least nine tenths of the frame. If the result has no charts, a table fills the frame."""
    charts = vp.load(reports[name].parent).charts()
    charts.save(tmp_path / "charts.html")
    page = chromium.new_page(viewport={"width": 900, "height": 100})
    page.goto((tmp_path / "charts.html").as_uri())
    page.wait_for_timeout(500)
    assert page.evaluate("document.documentElement.scrollHeight") > 0.9 * charts.height
    assert f"height:{charts.height}px" in charts._repr_html_()
    page.close()


def test_a_seeded_release_is_marked_as_not_private(opened):
    """The alert is at the top of the page, and the window title begins with NOT PRIVATE."""
    page = opened("seeded").page
    assert page.title().startswith("NOT PRIVATE")
    assert page.get_by_role("alert").bounding_box()["y"] < 100


def test_sequences_show_noisy_counts(opened):
    """The grams of a model are shown with their counts, and there is no completions box."""
    page = opened("sequences").page
    page.click("[data-sort=count]")
    first = page.eval_on_selector("#list .item[data-place='0']", "e => [...e.children].map(c => c.textContent)")
    assert first[0] == "home"
    assert 2500 < int(first[1].replace(",", "")) < 3500
    assert page.locator("#completions").count() == 0


def test_paths_of_sessions_are_drawn(opened):
    """The charts of beginnings, lengths and paths show an interval for each bar.

    The shares in each row of the table add up to about 100 percent.
    """
    page = opened("sequences").page
    page.wait_for_selector("#chart-paths svg g[aria-label=bar]", state="attached")
    for name, bars in (("starts", 3), ("session-lengths", 5), ("paths", 12)):
        drawn = page.locator(f"#chart-{name} svg g[aria-label=bar] > *").count()
        assert 1 <= drawn <= bars
        assert page.locator(f"#chart-{name} svg g[aria-label=rule] > line").count() == drawn + 1
    cells = page.eval_on_selector_all(
        ".heat tbody tr", "all => all.map(row => [...row.querySelectorAll('td')].map(cell => Number(cell.textContent)))"
    )
    assert [len(row) for row in cells] == [4, 4, 4]
    assert all(94 <= sum(row) <= 102 for row in cells)
    assert page.eval_on_selector(".heat td", "e => e.title").endswith("%")
    assert page.locator("#sessions .chart[role=img][aria-label]").count() == 3


def test_the_browser_enforces_the_content_security_policy(opened):
    """A script that was added to the file of the page cannot send data, and no script can be added to the open page."""
    report = opened("phrases")
    sent = report.page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'refused')")
    assert sent == "refused"
    report.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))"
    )
    assert report.page.evaluate("window.ran") is None
    assert len(report.complaints) >= 2
    assert all("Content Security Policy" in each or "Fetch API" in each for each in report.complaints)
    report.complaints.clear()
    report.requests[:] = [url for url in report.requests if url.startswith("file:")]


def test_a_report_of_100_000_phrases_opens_and_searches_quickly(opened, reports):
    """A report of 100,000 phrases opens in about a second, and a search takes milliseconds.

    The test fails if opening takes 20 s or a search takes 1000 ms.
    """
    begun = time.perf_counter()
    report = opened("many")
    took = time.perf_counter() - begun
    search = """typed => {
        const box = document.getElementById("search"), begun = performance.now();
        box.value = typed;
        box.dispatchEvent(new Event("input"));
        document.getElementById("list").clientHeight;
        return performance.now() - begun;
    }"""
    answers = [report.page.evaluate(search, typed) for typed in ("w", "wa", "w1f", "zzz", "")]
    size = reports["many"].stat().st_size
    print(f"{size:,} bytes; open and ready {took:.2f} s; searches {', '.join(f'{each:.0f} ms' for each in answers)}")
    assert size < 4_000_000
    assert took < 20
    assert max(answers) < 1000
