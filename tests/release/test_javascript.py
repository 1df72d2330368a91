"""Tests that the scripts of the report, run with Node, return the same values as the corresponding Python code."""

import io
import json
import re
import shutil
import subprocess
from csv import reader

import polars as pl
import pytest

import voxpop as vp
from support.languages import SENTENCES, SIGNS
from voxpop.reading.one_text import Cutter, cut_prompt
from voxpop.release.report.page import scripts
from voxpop.release.result import StoredPlan
from voxpop.release.table import table_of_lists

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not installed")
TEXTS = [
    "Thank you very MUCH!",
    "‘So’ I don’t, rock ’n’ roll isnʼt",
    "see https://example.org/a?b=c and www.example.org, then",
    "ΟΔΟΣ straße İstanbul été café",
    "3.14 a_b x's' ''y 你好 नमस्ते 👍🏽 ",
    "",
    *SENTENCES.values(),
    *SIGNS,
]
GRAMS = [
    "don't",
    "e",
    "see",
    "thank",
    "very",
    "you",
    "été",
    "see you",
    "thank you",
    "you see",
    "you very",
    "thank you very",
]


def run(script, data):
    """Run a script with `DATA` set to `data`, and return the JSON that it prints."""
    text = f"const DATA = {json.dumps(data)};\n{script}"
    done = subprocess.run([NODE, "-"], input=text, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("reading", ["words", "whitespace", "characters", ""])
def test_prompts_have_the_same_tokens_in_python_and_javascript(reading):
    """The tokenizers also agree on whether the last token can be unfinished."""
    body = "console.log(JSON.stringify(DATA.map((text) => cutPrompt(text, %s, new Map()))));"
    found = run(scripts(("cutting",)) + body % json.dumps(reading), TEXTS)
    wanted = [cut_prompt(text, reading, {}) for text in TEXTS]
    assert [(each["tokens"], each["open"]) for each in found] == [tuple(each) for each in wanted]
    if reading:
        assert [each.tokens for each in wanted] == [Cutter(reading)(text) for text in TEXTS]


def test_completions_are_the_same_in_python_and_javascript():
    """The page unpacks the grams and returns the same continuations as `Release.complete`."""
    rows = sorted((gram.split() for gram in GRAMS), key=lambda gram: (len(gram), [token.encode() for token in gram]))
    release = vp.Release(table_of_lists(rows), StoredPlan({}), vp.Guarantee(4, 1e-7), "words")
    html = release.report().html
    parts = {name: re.search(rf'id="{name}"[^>]*>(.*?)</script>', html, re.DOTALL)[1] for name in ("facts", "grams")}
    prompts = ["thank", "thank you", "thank you v", "you ", "nobody", "", "é", "see y", "Don’"]
    script = (
        "const document = { getElementById: (id) => ({ textContent: DATA.parts[id] }) };\n"
        + scripts(("payload", "cutting", "trie", "completing"))
        + "unpack().then((tree) => { const completer = new Completer(tree, FACTS.grams.reading);"
        "console.log(JSON.stringify(DATA.prompts.map((prompt) => completer.complete(prompt, 12)))); });"
    )
    found = run(script, {"parts": parts, "prompts": prompts})
    for prompt, offers in zip(prompts, found, strict=True):
        wanted = [(each.token, list(each.context), each.phrases) for each in release.complete(prompt, 12)]
        assert [(each["token"], each["context"], each["phrases"]) for each in offers] == wanted, prompt


@pytest.mark.parametrize(("word", "named"), [("今天", True), ("ไทย", True), ("été", False)])
def test_the_page_mentions_the_dictionaries_of_the_browser(word, named):
    """If a dictionary separated the words of a release, the page mentions that browsers can use other dictionaries."""
    release = vp.Release(table_of_lists([[word]]), StoredPlan({}), vp.Guarantee(4, 1e-7), "words")
    assert ("dictionaries of this browser" in release.report().html) == named


def test_each_part_of_a_key_has_a_column():
    """The page and its CSV file have a column for each part of a key, even if values contain bars and backslashes."""
    table = pl.DataFrame(
        {"a|b": ["x|y", "\\", "", "|\\|"] * 800, "day": ["7", "é", "\\|", ""] * 800, "who": range(3200)}
    )
    keys = vp.Items(max_items_per_user=1).release(vp.read(table, user="who", items=["a|b", "day"]), vp.Budget(4, 1e-7))
    page = keys.report().html
    facts = json.loads(re.search(r'<script type="application/json" id="facts">(.*?)</script>', page)[1])
    assert facts["keys"] == ["a|b", "day"]
    assert '<span class="cell">a|b</span><span class="cell">day</span>' in page
    assert 'id="completer"' not in page
    body = (
        "const FACTS = DATA.facts, rows = {tree: {counts: null}, text: DATA.texts};"
        "const nodes = DATA.texts.keys();"
        "console.log(JSON.stringify([DATA.texts.map(keyParts), csvOf(rows, nodes)]));"
    )
    texts = [gram[0] for gram in keys.each_gram()]
    parts, csv = run(scripts(("cutting", "rows", "saving")) + body, {"facts": facts, "texts": texts})
    assert [tuple(each) for each in parts] == keys.to_list()
    assert [tuple(row) for row in reader(io.StringIO(csv, newline=""))] == [("a|b", "day"), *keys.to_list()]


def test_a_key_of_one_column_is_shown_in_one_cell():
    """The page of keys has no completer."""
    table = pl.DataFrame({"shop": [7] * 3000, "who": range(3000)})
    page = (
        vp.Items(max_items_per_user=1)
        .release(vp.read(table, user="who", items="shop"), vp.Budget(4, 1e-7))
        .report()
        .html
    )
    assert 'class="cell"' not in page
    assert 'id="completer"' not in page


@pytest.mark.parametrize(
    ("size", "first"), [(3, "word0 · word1 · word2"), (1000, "300 of 1,000, evenly spaced: word0 · word3 ")]
)
def test_the_printed_page_contains_grams(size, first):
    """The printed page lists at most 300 grams, with control characters escaped."""
    fake = """
    class Node { constructor() { this.parts = []; } append(each) { this.parts.push(each); }
      replaceChildren(...parts) { this.parts = parts; }
      get text() { return this.parts.map((each) => (each instanceof Node ? each.text : each)).join(""); }
      set textContent(text) { this.parts = [text]; } }
    const printed = new Node();
    const document = { createElement: () => new Node(), getElementById: () => printed };
    const byId = (id) => printed, many = (number) => number.toLocaleString("en-US");
    """
    body = "printRows(DATA, DATA.map((_, place) => place)); console.log(JSON.stringify(printed.text));"
    texts = [f"word{number}" for number in range(size)]
    found = run(fake + scripts(("visible", "printing")) + body, texts)
    assert found.startswith(first)
    assert found.count("·") == min(size, 300) - 1
    assert run(fake + scripts(("visible", "printing")) + body, ["a\u202eb"]) == "aU+202Eb"
