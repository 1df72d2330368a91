"""gensim joins the tokens of released grams."""

import pytest

import voxpop as vp

pytest.importorskip("gensim", reason="gensim is not installed: make exports")


def test_pairs_then_longer_grams(phrases):
    """One pass joins pairs, a second one triples; what was not released stays apart."""
    joined = vp.exports.to_gensim(phrases)
    assert joined[["thank", "you", "very", "much"]] == ["thank_you", "very", "much"]
    assert joined[joined[["thank", "you", "very", "much"]]] == ["thank_you_very", "much"]
    assert joined[["you", "thank"]] == ["you", "thank"]


def test_it_survives_a_file(phrases, tmp_path):
    """Saved by voxpop, loaded by gensim."""
    from gensim.models.phrases import FrozenPhrases

    vp.exports.write(phrases, tmp_path / "phrases", format="gensim")
    assert FrozenPhrases.load(str(tmp_path / "phrases"))[["thank", "you"]] == ["thank_you"]


def test_what_cannot_be_is_refused(released):
    """No phrases, and a delimiter that tokens hold."""
    with pytest.raises(vp.errors.InputError, match="single tokens only"):
        vp.exports.to_gensim(released([("tea",)]))
    odd = released([("a",), ("b",), ("a_b",), ("a", "b")])
    with pytest.raises(vp.errors.InputError, match="delimiter"):
        vp.exports.to_gensim(odd)
    assert vp.exports.to_gensim(odd, delimiter="|")[["a", "b"]] == ["a|b"]
