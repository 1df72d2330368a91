"""Tests that HTML is reduced to its visible text."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from support.look import corpus_documents, read_engine
from voxpop.cli import main
from voxpop.reading.tokenizers import MARKUP, plain_text

SEEN = {
    "Tea &amp; <b>m</b>ilk": "Tea & milk",
    "<p>one</p><p>two</p>": "one two",
    "one<br/>two<td>three": "one two three",
    "<a href='https://secret.example' title=\"secret\">link</a>": "link",
    "x<!-- secret --> <?secret?><!DOCTYPE secret>y": "x y",
    "<script>secret()</script>a<style>secret {}</style>b<template><p>secret</p></template>c": "a b c",
    "<SCRIPT src='x'>if (1 < 2) secret</SCRIPT >seen": "seen",
    "caf&eacute; na&#239;ve &#x1F44D; &nosuch; AT&T": "café naïve 👍 &nosuch; AT&T",
    "un<wbr>be&shy;liev<i>able</i>": "unbelievable",
    "2 < 3 and I <3 you": "2 < 3 and I <3 you",
    "<![if secret]>seen<![endif]>": "seen",
    "</script>seen": "seen",
}


@pytest.mark.parametrize("text", SEEN)
def test_visible_text_is_kept(text):
    """Entities become letters, tags disappear or end a line, and invisible parts are omitted."""
    assert " ".join(plain_text(text).split()) == SEEN[text]


NAMES = ["script", "<script>", "</script>", "<template>", "</template>", "CDATA[", "&amp;"]
PIECES = st.sampled_from(
    [
        "<",
        ">",
        "<b",
        "</",
        "<!",
        "<!-",
        "<!--",
        "-->",
        "<![",
        "]]>",
        "<?",
        "&",
        "&#",
        ";",
        "/",
        "=",
        '"',
        "'",
        " ",
        "a",
        "é",
        "\x00",
        *NAMES,
    ]
)


@given(text=st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=12).map("".join)))
def test_any_text_is_read(text):
    """Malformed text does not raise an error, and text without markup does not change."""
    plain = plain_text(text)
    assert len(plain) <= len(text) + text.count("<")
    if not set(MARKUP) & set(text) and "\u00ad" not in text:
        assert plain == text


TREES = st.recursive(
    st.sampled_from(["ab", "cd", "&amp;", "é"]).map(lambda word: (word, word.replace("&amp;", "&"))),
    lambda inner: st.tuples(st.sampled_from(["b", "p", "script", "span", "div"]), st.lists(inner, max_size=3)).map(
        lambda given: wrapped(*given)
    ),
    max_leaves=8,
)


def wrapped(tag, inner):
    """Return an element and its visible text."""
    written, seen = ("".join(part) for part in zip(*inner, strict=True)) if inner else ("", "")
    if tag == "script":
        return f'<{tag} id="x">secret</{tag}>', "\n\n"
    around = "" if tag in ("b", "span") else "\n"
    return f'<{tag} class="secret">{written}</{tag}>', f"{around}{seen}{around}"


@given(TREES)
def test_only_block_elements_separate_text(tree):
    """Inline elements do not separate text, and other elements end a line. Scripts contain no visible text."""
    assert plain_text(tree[0]) == tree[1]


@pytest.mark.parametrize("memory", [None, "1GiB"])
def test_plain_texts_and_marked_up_texts_can_be_mixed(memory):
    """Plain texts, marked-up texts and nulls may have any order. Sentences end at the ends of paragraphs."""
    texts = ["plain tea", "<p>Good</p><p>day</p>", None, "a&amp;b", "x <i>y</i>"]
    table = pl.DataFrame({"who": range(5), "text": texts})
    read = read_engine(
        table, user="who", text="text", tokenizer=vp.Tokenizer(html=True), options=vp.ReadOptions(memory=memory)
    )
    assert corpus_documents(read) == [[["plain", "tea"]], [["good", "day"]], [[]], [["a", "b"]], [["x", "y"]]]
    cut = read_engine(
        table,
        user="who",
        text="text",
        tokenizer=vp.Tokenizer(sentences=True, html=True),
        options=vp.ReadOptions(memory=memory),
    )
    assert [[each for each in user if each] for user in corpus_documents(cut)][1] == [["good"], ["day"]]
    assert "p" in read_engine(table, user="who", text="text").vocabulary.to_pylist()


def test_other_tokenisers_get_plain_text():
    """Markup is removed before the text is tokenised."""
    table = pl.DataFrame({"who": [1], "text": ["<p>Tea&nbsp;Time</p>"]})
    cut = {"whitespace": ["Tea", "Time"], "characters": list("teatime")}
    for tokenizer, words in cut.items():
        corpus = read_engine(table, user="who", text="text", tokenizer=vp.Tokenizer(tokenizer, html=True))
        assert corpus_documents(corpus)[0][0] == words


def test_the_html_option_is_rejected_for_items():
    """Items that look like markup are plain keys, so the option would have no effect."""
    with pytest.raises(vp.errors.InputError, match="html=True applies only to text="):
        read_engine({"who": [1], "what": ["<p>"]}, user="who", items="what", tokenizer=vp.Tokenizer(html=True))


def test_the_command_removes_markup(tmp_path, capsys):
    """The command-line option --html removes markup."""
    path = tmp_path / "posts.parquet"
    pl.DataFrame({"who": range(900), "text": ["<p class='x'>tea</p>"] * 900}).write_parquet(path)
    call = ["items", str(path), "--user", "who", "--text", "text", "--html", "--epsilon", "4", "--delta", "1e-7"]
    assert main([*call, "--max-items-per-user", "1", "-o", str(tmp_path / "words")]) == 0
    assert vp.load(tmp_path / "words").to_list() == ["tea"]
    capsys.readouterr()
