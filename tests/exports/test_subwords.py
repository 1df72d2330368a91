"""Tests that subword tokenizers are trained only on released words and counts."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxpop as vp
from voxpop.cli import main
from voxpop.errors import InputError, ReleaseError
from voxpop.exports import libraries
from voxpop.exports.libraries import _text
from voxpop.reading.choices import SUBWORDS
from voxpop.release.result import StoredPlan

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed: make exports")

MOST = 1 << 12
"""The bound on the words of the training text in one test."""
COUNTS = {"low": 500, "lower": 200, "lowest": 300, "newest": 600, "été": 90, "wide": -3}


def counted(counts=COUNTS, token_source="words"):
    """Return released counts of words."""
    items = sorted(counts, key=str.encode)
    release = vp.Release.from_items(
        pa.array(items, pa.large_string()), StoredPlan({}), vp.Guarantee(3, 5e-8), token_source
    )
    numbers = np.array([counts[item] for item in items])
    return vp.Counts(release, numbers, 2.0, StoredPlan({"error": 2.0}), vp.Guarantee(1, 5e-8))


def test_frequent_words_are_subwords_and_bytes_are_unchanged():
    """Decoded text is unchanged except for lower case, and released words are encoded in few tokens."""
    made = vp.exports.to_subword_tokenizer(counted(), "bpe", 512)
    assert made.encode("see the lowest newest").tokens[-2:] == ["Ġlowest", "Ġnewest"]
    assert made.encode("newest").tokens == ["Ġnewest"]  # also at the start of a text
    for text in ("low été 👍 <b>\n\t", "今天", "", "don't\x00", " low", "  low  ", "low low"):
        assert made.decode(made.encode(text).ids) == text
    assert made.decode(made.encode("LOW").ids) == "low"
    assert 256 < made.get_vocab_size() < 512


@pytest.mark.parametrize("model", ["wordpiece", "unigram"])
def test_unreleased_characters_are_unknown(model):
    """Visible ASCII characters are always known. Other characters are known only from released words."""
    made = vp.exports.to_subword_tokenizer(counted(), model, 512)
    assert "[UNK]" not in made.encode("low, (new) été #7!").tokens
    unknown = made.token_to_id("[UNK]")
    assert unknown in made.encode("今").ids
    assert made.decode(made.encode("lowest newest").ids) == "lowest newest"


def test_texts_are_folded_like_the_texts_of_the_release():
    """Texts are normalized like the texts of the release. Items and whitespace-separated words are not changed."""
    made = vp.exports.to_subword_tokenizer(counted({"New": 700, "new": 5}, "whitespace"), "bpe", 512)
    assert made.encode("New").tokens == ["ĠNew"]
    assert made.encode("new").tokens != ["ĠNew"]
    for reading, alike in (("words", True), ("characters", False)):
        made = vp.exports.to_subword_tokenizer(counted({"don't": 700}, reading), "bpe", 512)
        assert (made.encode(" DON\u2019T").tokens == made.encode(" don't").tokens) == alike
    made = vp.exports.to_subword_tokenizer(counted({"οδος": 700}), "bpe", 512)
    assert made.encode(" ΟΔΟΣ").tokens == made.encode(" οδος").tokens


@settings(max_examples=40)
@given(counts=st.dictionaries(st.text("abc", min_size=1, max_size=4), st.integers(-5, 4 * MOST), max_size=6))
def test_the_training_text_repeats_words_by_their_counts(counts):
    """The training text repeats words in proportion to their counts, at least once, with a bounded total."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(libraries, "MOST_REPEATED", MOST)  # The real bound would take most of the time of the test.
        lines = list(_text(counted(counts).each_gram()))
    for line in lines:
        words = line.split(" ")[1:]
        assert len(set(words)) == 1
        found[words[0]] = len(words)
    assert found.keys() == counts.keys()
    total = sum(max(1, users) for users in counts.values())
    scale = min(1, MOST / max(1, total))
    assert all(abs(found[word] - scale * max(1, users)) <= 1 for word, users in counts.items())


@pytest.mark.parametrize("model", SUBWORDS)
def test_subwords_depend_only_on_the_release(model):
    """Equal words and counts give equal subwords, although the library can number them differently.

    A release without words also gives a tokenizer.
    """
    first, second = (vp.exports.to_subword_tokenizer(counted(), model, 600).get_vocab() for _ in range(2))
    assert set(first) == set(second)
    assert vp.exports.to_subword_tokenizer(counted({}), model, 600).encode("low").ids


def test_subwords_are_trained_only_on_single_words(released):
    """The training text does not contain phrases of several words."""
    release = released([("new",), ("york",), ("new", "york")])
    counts = vp.Counts(release, np.array([400, 300, 300]), 1.0, StoredPlan({}), vp.Guarantee(1, 5e-8))
    assert "".join(_text(counts)).split() == ["new"] * 400 + ["york"] * 300


@pytest.mark.parametrize("model", SUBWORDS)
def test_the_command_writes_the_result(tmp_path, model, capsys, monkeypatch):
    """The command writes a tokenizer for a release with counts. Without counts, it prints an error."""
    counts = counted()
    counts.grams.save(tmp_path / "words")
    monkeypatch.chdir(tmp_path)
    call = ["export", "words", "--format", model, "--size", "600", "-o", "tokenizer.json"]
    assert main(call) == 2
    assert "contains no counts" in capsys.readouterr().err
    counts.save(tmp_path / "words")
    assert main(call) == 0
    assert capsys.readouterr().out == "Wrote 6 grams to tokenizer.json\n"
    made = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert (
        made.encode("lowest newest").ids
        == vp.exports.to_subword_tokenizer(counts, model, 600).encode("lowest newest").ids
    )
    assert main(call) == 2
    assert "already exists" in capsys.readouterr().err


def test_impossible_arguments_are_rejected(tmp_path):
    """The cases are another model, a small vocabulary, an invalid token, missing counts and an existing file."""
    counts = counted()
    for wrong, words in (
        ({"model": "words"}, '"bpe" or'),
        ({"size": 100}, "from 512"),
        ({"unknown": ""}, "[UNK]"),
        ({"unknown": "low"}, "not be a released"),
    ):
        with pytest.raises(InputError, match=words.replace("[", r"\[")):
            vp.exports.to_subword_tokenizer(counts, **wrong)
    with pytest.raises(InputError, match="Count the release first"):
        vp.exports.write(counts.grams, tmp_path / "t.json", "bpe")
    (tmp_path / "t.json").write_text("mine")
    with pytest.raises(ReleaseError, match="already exists"):
        vp.exports.write(counts, tmp_path / "t.json", "bpe", size=600)
