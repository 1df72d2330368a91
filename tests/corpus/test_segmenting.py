"""Words by Unicode's rules and ICU's dictionaries: one option for scripts with and without spaces."""

import re
import sys
import unicodedata

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from support.look import read_engine
from voxpop.cli import main
from voxpop.reading.segmenting import breaker, unicode_words
from voxpop.release.cutting import Cutter, cut_prompt

TEXTS = {
    "Don't panic -- it's 3.14, ROCK'N'ROLL 'tis": ["don't", "panic", "it's", "3.14", "rock'n'roll", "tis"],
    "See https://example.org/a?b or www.example.org": ["see", "or"],
    "don\u2019t \u2018quote\u2019 l\uff07eau p\u02bcyat": ["don't", "quote", "l'eau", "p'yat"],
    "我爱北京天安门。今天天气很好": ["我", "爱", "北京", "天安门", "今天", "天气", "很好"],
    "東京に住んでいる": ["東京", "に", "住", "んで", "いる"],
    "ฉันรักภาษาไทยมาก": ["ฉัน", "รัก", "ภาษา", "ไทย", "มาก"],
    "nice 👍🏽👍🏽 👩‍👩‍👧‍👦 🇩🇪!": ["nice", "👍🏽", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪"],
    " ' '' … — ": [],
    "": [],
}


@pytest.mark.parametrize("text", TEXTS)
def test_words_of_every_script(text):
    """Apostrophes and points stay within words and numbers, and never form words."""
    assert unicode_words(text) == TEXTS[text]


@given(st.text(st.characters(codec="utf-8")))
def test_words_follow_each_other_in_the_text(text):
    """The words occur in the folded text in the same order, and no word consists only of marks or spaces."""
    rest = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())
    rest = re.sub("[\u2018\u2019\u02bc\uff07]", "'", rest)
    for word in unicode_words(text):
        assert any(unicodedata.category(letter)[0] in "LN" or unicodedata.category(letter) == "So" for letter in word)
        assert word in rest
        rest = rest.split(word, 1)[1]


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20), max_size=4))
def test_readers_exports_and_completions_cut_alike(texts):
    """A corpus, an exported vocabulary and a typed prompt give the same words."""
    table = pl.DataFrame({"who": range(len(texts) + 1), "text": ["x", *texts]})
    corpus = read_engine(table, user="who", text="text", tokenizer="unicode")
    words = corpus.vocabulary.to_pylist()
    for number, text in enumerate(["x", *texts]):
        own = corpus.tokens[corpus.user_start[number] : corpus.user_start[number + 1]]
        cut = [words[token] for token in own if token >= 0]
        assert cut == Cutter("unicode")(text) == cut_prompt(text, "unicode", ()).tokens


def test_phrases_without_spaces(tmp_path, capsys):
    """The library and the command release Chinese, Japanese and Thai phrases, and completion tokenises the same way."""
    rows = {"who": range(8000), "text": ["今天天气很好 👍", "ฉันรักภาษาไทย", "東京に住む 👍", "good day"] * 2000}
    path = tmp_path / "posts.parquet"
    pl.DataFrame(rows).write_parquet(path)
    release = vp.NGrams(max_length=3, limit=10).release(
        read_engine(path, user="who", text="text", tokenizer="unicode"), vp.Budget(4, 1e-7)
    )
    assert {("今天", "天气", "很好"), ("ฉัน", "รัก", "ภาษา"), ("東京", "に", "住む"), ("很好", "👍")} <= set(release)
    assert {("住む", "👍"), ("good", "day"), ("👍",)} <= set(release)
    assert "很好" in [each.token for each in release.complete("今天天气")]
    options = ["--text", "text", "--user", "who", "--tokenizer", "unicode", "--epsilon", "4", "--delta", "1e-7"]
    assert main(["items", str(path), *options, "--limit", "10", "-o", str(tmp_path / "words")]) == 0
    assert {"很好", "ไทย", "👍"} <= set(vp.load(tmp_path / "words"))
    capsys.readouterr()


def test_without_the_library(monkeypatch):
    """The error occurs before a row is read, and names the package to install."""
    breaker.cache_clear()
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    with pytest.raises(vp.errors.InputError, match=r"pip install voxpop\[unicode\]"):
        read_engine("nowhere.csv", user="who", text="text", tokenizer="unicode")
    breaker.cache_clear()
