"""Tests that a scikit-learn vectorizer counts exactly the released grams."""

import os
import pickle
from collections import Counter

import numpy as np
import pytest

import voxpop as vp
from support.languages import SENTENCES, SIGNS
from voxpop.reading.one_text import Cutter

pytest.importorskip("sklearn", reason="scikit-learn is not installed: make exports")

TEXTS = ["Thank you VERY much, thank you!", "See https://thank.you/very: don't", "", "you very very ÉTÉ"]


def by_hand(release, text):
    tokens = Cutter("words")(text)
    longest = max(len(gram) for gram in release)
    grams = Counter(tuple(tokens[i : i + k]) for k in range(1, longest + 1) for i in range(len(tokens) - k + 1))
    return [grams[gram] for gram in release]


def test_words_of_every_language_are_counted(released):
    """Every word of 69 languages is counted in the text that contains it."""
    texts = [*SENTENCES.values(), *SIGNS]
    release = released({(word,) for text in texts for word in Cutter("words")(text)})
    counted = vp.exports.to_count_vectorizer(release).transform(texts)
    assert counted.sum(axis=1).ravel().tolist()[0] == [len(Cutter("words")(text)) for text in texts]


def test_counts_equal_those_of_the_released_grams(phrases):
    """Columns are grams in canonical order, and the counts equal those computed by hand."""
    counted = vp.exports.to_count_vectorizer(phrases).transform(TEXTS).toarray()
    assert counted.tolist() == [by_hand(phrases, text) for text in TEXTS]
    assert counted.sum() > 10


def test_the_vectorizer_of_a_real_release_counts_its_texts():
    """A vectorizer of a real release counts every gram in the texts of the release."""
    import polars as pl

    table = pl.DataFrame({"who": range(2000), "what": ["Thank you very much!", "See you soon, don't wait"] * 1000})
    posts = vp.read(table, user="who", text="what")
    release = vp.NGrams(max_length=3, max_phrases_per_user=20).release(posts, vp.Budget(4, 1e-7))
    counted = vp.exports.to_count_vectorizer(release, binary=True).transform(table["what"].head(2).to_list()).toarray()
    assert counted.tolist() == [[min(1, n) for n in by_hand(release, text)] for text in table["what"].head(2)]
    assert counted.sum() > 12


def test_names_are_kept_by_pickling(phrases):
    """The names of features are grams joined by spaces, and a vectorizer can be pickled."""
    vectorizer = pickle.loads(pickle.dumps(vp.exports.to_count_vectorizer(phrases)))
    assert vectorizer.get_feature_names_out().tolist() == [" ".join(gram) for gram in phrases]
    assert vectorizer.transform(["thank you"]).sum() == 3


def test_items_with_spaces_are_counted_as_a_whole(released):
    """Items of lists are counted as a whole, even if they contain spaces."""
    items = released([("New York",), ("tea, green",), ("York",)])
    counted = vp.exports.to_count_vectorizer(items, tokenizer=None).transform(
        [["New York", "York", "New York"], ["New"]]
    )
    assert counted.toarray().tolist() == [[2, 1, 0], [0, 0, 0]]


def test_grams_with_the_same_text_are_rejected(released):
    """The grams ("new york",) and ("new", "york") have the same text, so a release of both is rejected."""
    both = released([("new",), ("york",), ("new york",), ("new", "york")])
    with pytest.raises(vp.errors.InputError, match="two grams would become one"):
        vp.exports.to_count_vectorizer(both)


AUTHORS = [f"author {number % 1000}" for number in range(3000)]
CHECKS = [
    *("check_no_attributes_set_in_init", "check_parameters_default_constructible", "check_get_params_invariance"),
    *("check_set_params", "check_estimator_repr", "check_estimator_cloneable", "check_valid_tag_types"),
    *("check_do_not_raise_errors_in_init_or_set_params", "check_mixin_order", "check_estimator_tags_renamed"),
]
DOCUMENTS = ["Thank you very much!", "see you soon", "See you, thank you"] * 1000


def estimator(**arguments):
    from voxpop.exports.sklearn import PrivateVocabulary

    return PrivateVocabulary(epsilon=4, delta=1e-7, **arguments)


def test_the_estimator_passes_the_checks_of_scikit_learn():
    """The estimator passes the checks of scikit-learn that apply to transformers of texts.

    `check_estimator` skips all checks with numeric data.
    """
    from sklearn.base import clone
    from sklearn.utils import estimator_checks

    with pytest.warns(match="requires input"):
        estimator_checks.check_estimator(estimator())
    for name in CHECKS:
        getattr(estimator_checks, name)("PrivateVocabulary", estimator())
    assert clone(estimator(max_length=3)).max_length == 3
    assert "epsilon=4" in repr(estimator())


def test_the_estimator_works_in_a_pipeline():
    """The estimator is fitted with the users of the documents, and its columns are the released phrases."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(estimator(max_length=2), LogisticRegression())
    labels = [0, 1, 1] * 1000
    model.fit(DOCUMENTS, labels, privatevocabulary__users=AUTHORS)
    vocabulary = model[0]
    assert {"thank you", "you", "see you"} <= {*vocabulary.get_feature_names_out()}
    assert vocabulary.release_.guarantee.epsilon == 4
    assert model.score(DOCUMENTS, labels) == 1.0
    counts = vocabulary.transform(["you and you"]).toarray()[0]
    assert counts[vocabulary.get_feature_names_out().tolist().index("you")] == 2


def test_the_estimator_protects_users_and_not_documents():
    """A user with many documents still has one unit of weight. Without users, `fit` raises an error."""
    vocabulary = estimator().fit([*DOCUMENTS, *["kanarienvogel"] * 3000], users=[*AUTHORS, *["ann"] * 3000])
    assert "kanarienvogel" not in vocabulary.get_feature_names_out()
    with pytest.raises(vp.errors.InputError, match="users= must name the user"):
        estimator().fit(DOCUMENTS)
    with pytest.raises(vp.errors.InputError, match="different lengths"):
        estimator().fit(DOCUMENTS, users=AUTHORS[:7])


def test_the_estimator_accepts_an_empty_vocabulary_and_a_ledger(tmp_path):
    """An empty vocabulary gives no columns, and the account is charged."""
    account = vp.Ledger(tmp_path / "ledger.json").open("posts", vp.Budget(9, 1e-6), create=True)
    vocabulary = estimator(ledger=account).fit(["alone"], users=["ann"])
    assert vocabulary.transform(["alone", "tea"]).shape == (2, 0)
    assert vocabulary.get_feature_names_out().tolist() == []
    assert len(account.entries) == 1


def test_a_model_selection_warns_with_the_number_of_releases(tmp_path):
    """Copies of one estimator share the count of fits and the account, and warn at every fit after the first."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    account = vp.Ledger(tmp_path / "team.ledger").open("posts", vp.Budget(40, 1e-5), create=True)
    search = GridSearchCV(
        make_pipeline(estimator(ledger=account), LogisticRegression()), {"logisticregression__C": [1, 10]}, cv=2
    )
    with pytest.warns(UserWarning, match="vocabularies were released") as warned:
        search.fit(DOCUMENTS, [0, 1, 1] * 1000, privatevocabulary__users=np.array(AUTHORS))
    texts = [str(each.message) for each in warned if "vocabularies were released" in str(each.message)]
    assert [text.split()[0] for text in texts] == ["2", "3", "4", "5"]
    assert "the total is (20, 5e-07)-DP" in texts[-1]
    assert len(account.entries) == 5


def test_a_copy_in_another_process_raises_a_warning(monkeypatch):
    """Processes cannot count each other's fits, so each process raises a warning."""
    from sklearn.base import clone

    first = estimator()
    first.fit(DOCUMENTS, users=AUTHORS)
    copy = clone(first)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.warns(UserWarning, match="another process"):
        copy.fit(DOCUMENTS, users=AUTHORS)


def test_a_model_selection_with_one_vocabulary_spends_budget_once(tmp_path, recwarn):
    """In the recipe of the guide, the vocabulary is fitted first, and the selection uses its counts."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    account = vp.Ledger(tmp_path / "team.ledger").open("posts", vp.Budget(4, 1e-6), create=True)
    counts = estimator(ledger=account).fit(DOCUMENTS, users=AUTHORS).transform(DOCUMENTS)
    GridSearchCV(LogisticRegression(), {"C": [1, 10]}, cv=2).fit(counts, [0, 1, 1] * 1000)
    assert len(account.entries) == 1
    assert not [each for each in recwarn if "vocabularies were released" in str(each.message)]


def test_seeds_are_accepted_with_min_users():
    """A seed gives a repeatable vocabulary without a guarantee. `min_users` applies only to words."""
    first, second = (estimator(seed=1, min_users=50).fit(DOCUMENTS, users=AUTHORS) for _ in range(2))
    assert first.release_ == second.release_
    assert not first.release_.guarantee.private
    with pytest.raises(vp.errors.InputError, match="max_length=1"):
        estimator(max_length=2, min_users=50).fit(DOCUMENTS, users=AUTHORS)
