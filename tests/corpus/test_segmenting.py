"""Tests of the words of every script in the library, on the command line and in completions."""

import subprocess
import sys

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from naive import corpus as naive_corpus
from support.look import corpus_documents, read_engine
from voxpop.cli import main
from voxpop.reading import segmenting
from voxpop.reading.one_text import Cutter, cut_prompt
from voxpop.reading.segmenting import words

TEXTS = {
    "Don't panic -- it's 3.14, ROCK'N'ROLL 'tis": ["don't", "panic", "it's", "3", "14", "rock'n'roll", "tis"],
    "See https://example.org/a?b or www.example.org": ["see", "or"],
    "don\u2019t \u2018quote\u2019 l\uff07eau p\u02bcyat": ["don't", "quote", "l'eau", "p'yat"],
    "我爱北京天安门。今天天气很好": ["我", "爱", "北京", "天安门", "今天", "天气", "很好"],
    "東京に住んでいる": ["東京", "に", "住", "んで", "いる"],
    "ฉันรักภาษาไทยมาก": ["ฉัน", "รัก", "ภาษา", "ไทย", "มาก"],
    "nice 👍🏽👍🏽 👩‍👩‍👧‍👦 🇩🇪 ❤️ #️⃣!": ["nice"],
    "می\u200cخواهم کتاب\u200cها क्\u200dया": ["می\u200cخواهم", "کتاب\u200cها", "क्\u200dया"],
    "so\u00adft \u200eleft\u200f a\u200cb": ["soft", "left", "ab"],
    "http://t.cn/abc。今天天气 see “http://x.org”indeed": ["今天", "天气", "see", "indeed"],
    '"http://x.org"a (http://y.org)b <http://z.org>c http://naver.com에서': ["a", "b", "c", "에서"],
    "https://de.example/wiki/Köln_(Rhein) https://a.b/?c[]=d#e x": ["x"],
    "İstanbul istanbul ISPARTA ılık": ["istanbul", "istanbul", "isparta", "ılık"],
    "ΟΔΟΣ οδός": ["οδος", "οδός"],
    'צה"ל צה״ל ר׳ "שלום"': ['צה"ל', "צה״ל", "ר׳", "שלום"],
    "col·lecció · ինչպե՞ս ՞": ["col·lecció", "ինչպե՞ս"],
    " ' '' … — \u200d \ufe0f \u0301": [],
    "": [],
}


@pytest.mark.parametrize("text", TEXTS)
def test_words_of_every_script_are_split(text):
    """Apostrophes and joiners remain within words, and no word is invisible."""
    assert words(text) == TEXTS[text] == naive_corpus.words(text)


@given(st.text(st.characters(codec="utf-8")))
def test_words_are_in_the_order_of_the_text(text):
    """The words occur in the folded text in the same order, and each word begins with a letter or number."""
    rest = segmenting.folded(text)
    for word in words(text):
        assert naive_corpus.category(word[0]) in ("L", "N")
        assert not any(map(segmenting.is_ignored, word))
        assert word in rest
        rest = rest.split(word, 1)[1]


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20), max_size=4))
def test_readers_exports_and_completions_split_texts_in_the_same_way(texts):
    """A corpus, an exported vocabulary and a typed prompt give the same words."""
    table = pl.DataFrame({"who": range(len(texts) + 1), "text": ["x", *texts]})
    users = corpus_documents(read_engine(table, user="who", text="text"))
    for text, [cut] in zip(["x", *texts], users, strict=True):
        assert cut == Cutter("words")(text) == cut_prompt(text, "words", ()).tokens


@pytest.mark.parametrize("character", "\u00ad\u034f\u061c\u200b\u200e\u2060\u3164\ufe0f\ufeff\U000e0101\u200d\u200c")
@pytest.mark.parametrize("tokenizer", ["words", "characters"])
def test_no_token_is_invisible(character, tokenizer):
    """An invisible character between spaces, before a word or after a word is neither a token nor a part of a token."""
    assert Cutter(tokenizer)(f"{character} {character}a{character} {character}") == ["a"]


def test_phrases_of_languages_without_spaces_are_released(tmp_path, capsys):
    """The library and the command release Chinese, Japanese and Thai phrases. Completion tokenises in the same way."""
    rows = {"who": range(8000), "text": ["今天天气很好 👍", "ฉันรักภาษาไทย", "東京に住む 👍", "good day"] * 2000}
    path = tmp_path / "posts.parquet"
    pl.DataFrame(rows).write_parquet(path)
    release = vp.NGrams(max_length=3, max_phrases_per_user=10).release(
        read_engine(path, user="who", text="text"), vp.Budget(4, 1e-7)
    )
    assert {("今天", "天气", "很好"), ("ฉัน", "รัก", "ภาษา"), ("東京", "に", "住む"), ("good", "day")} <= set(release)
    assert not any("👍" in gram for gram in release)
    assert "很好" in [each.token for each in release.complete("今天天气")]
    options = ["--text", "text", "--user", "who", "--epsilon", "4", "--delta", "1e-7"]
    assert main(["items", str(path), *options, "--max-items-per-user", "10", "-o", str(tmp_path / "words")]) == 0
    assert {"很好", "ไทย", "good"} <= set(vp.load(tmp_path / "words"))
    capsys.readouterr()


def test_chinese_sentences_are_split(tmp_path, capsys):
    """No released phrase runs from one Chinese sentence into the next."""
    path = tmp_path / "posts.parquet"
    pl.DataFrame({"who": range(4000), "text": ["天气很好。我们去公园！谢谢"] * 4000}).write_parquet(path)
    options = ["--text", "text", "--user", "who", "--sentences", "--epsilon", "4", "--delta", "1e-7"]
    assert main(["ngrams", str(path), *options, "--max-length", "2", "-o", str(tmp_path / "phrases")]) == 0
    pairs = {gram for gram in vp.load(tmp_path / "phrases") if len(gram) == 2}
    assert pairs == {("天气", "很好"), ("我们", "去"), ("去", "公园")}
    capsys.readouterr()


@pytest.mark.parametrize(
    "columns", [{"text": "text", "tokenizer": each} for each in ("words", vp.Tokenizer("whitespace", True))]
)
def test_a_missing_library_is_reported(monkeypatch, columns):
    """The error names the package.

    The error does not depend on the texts, so it is the same for texts that need no dictionary.
    """
    monkeypatch.setitem(sys.modules, "icu4py", None)
    with pytest.raises(vp.errors.InputError, match=r"pip install icu4py"):
        read_engine({"who": [1], "text": ["plain"]}, user="who", **columns)


def test_a_broken_library_is_reported(monkeypatch):
    """A text that needs a dictionary raises the same error if the library is installed but cannot be loaded."""
    segmenting._breakers.cache_clear()
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    with pytest.raises(vp.errors.InputError, match=r"pip install icu4py"):
        words("今天")
    assert words("plain") == ["plain"]
    segmenting._breakers.cache_clear()


def test_latin_text_loads_no_dictionary():
    """The first text that needs ICU loads it."""
    code = (
        "import sys, voxpop as vp; vp.read({'who': [1], 'text': ['Plain ❤️ e\u0301']}, user='who', text='text');"
        "assert 'icu4py' not in sys.modules; vp.read({'who': [1], 'text': ['今天']}, user='who', text='text');"
        "assert 'icu4py.breakers' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
