"""Tests of the public interface, including fields, alphabets, plans, one sequence per user, and composition."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from naive import sequences as naive
from support.look import read_engine
from voxpop.engine.local.corpus import one_sequence_each
from voxpop.mechanisms.sequences.describe import report_of_model
from voxpop.privacy.composition import compose
from voxpop.privacy.secret import Secret
from voxpop.release.report.numbers import plain

pytestmark = pytest.mark.usefixtures("fixed_secrets")

PAGES = ["home", "news", "sport", "weather"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"max_length": 0}, "max_length"),
        ({"max_length": True}, "max_length"),
        ({"max_gram": 17}, "max_gram"),
        ({"alphabet": "abc"}, "list of strings"),
        ({"alphabet": [1, 2]}, '"17" for 17'),
        ({"alphabet": []}, "from 1 to"),
        ({"alphabet": ["a", "b", "a"]}, "must be distinct"),
        ({"alphabet": 3}, "list of strings"),
    ],
)
def test_invalid_fields_are_rejected(fields, words):
    """Each error names the field and the required correction."""
    with pytest.raises(vp.errors.InputError, match=words):
        vp.Sequences(**fields)


def test_a_missing_alphabet_is_rejected(visits):
    """The configuration is valid without an alphabet, but plans and releases require one. The error has a next step."""
    bare = vp.Sequences(max_length=20, max_gram=5)
    for call in (lambda: bare.plan(vp.Budget(1)), lambda: bare.release(visits, vp.Budget(1))):
        with pytest.raises(vp.errors.InputError, match="public") as refusal:
            call()
        assert 'alphabet="find"' in str(refusal.value)
        assert "home" in str(refusal.value)  # The example in the message contains this symbol.
    assert bare.to_dict()["alphabet_size"] is None


def test_the_order_of_the_alphabet_does_not_matter(visits):
    """Symbols are sorted by their bytes, so two orders give equal mechanisms and equal releases."""
    one, other = (vp.Sequences(4, 3, alphabet=order) for order in (PAGES, PAGES[::-1]))
    assert one == other
    assert one.release(visits, vp.Budget(1), seed=1) == other.release(visits, vp.Budget(1), seed=1)


def test_a_release_of_items_can_be_the_alphabet(visits):
    """The composed guarantee includes both costs."""
    words = vp.Items(max_items_per_user=4).release(visits, vp.Budget(1, 1e-6))
    model = vp.Sequences(5, 3, alphabet=words).release(visits, vp.Budget(2))
    assert list(model.alphabet) == PAGES
    both = compose([words.guarantee, model.guarantee])
    assert 2.9 < both.epsilon <= 3
    assert both.delta == 1e-6
    seeded = vp.Sequences(5, 3, alphabet=words).release(visits, vp.Budget(2), seed=1)
    assert not compose([words.guarantee, seeded.guarantee]).private


def test_the_plan_contains_all_numbers_before_any_data_is_read():
    """Lengths get at most 7 % of epsilon, and distinct and repeated symbols get at most 15 % of the rest."""
    plan = vp.Sequences(alphabet=[str(page) for page in range(17)]).plan(vp.Budget(0.5, 1e-7))
    left = (1 - 0.07) * 0.85
    lengths, variety, level = plan.to_dict()["passes"]
    assert lengths["scale"] == pytest.approx(1 / (0.5 * 0.07))
    assert variety == {"pass": "variety", "largest_part": "3/20"}
    # The root gets a twentieth of the remaining epsilon, and the noise is for the usual length of 20 symbols.
    assert plan.scale == pytest.approx(20 / 0.5 * 20 / left)
    assert plan.threshold == pytest.approx(18 * 20 / 0.5 / (left * 0.95))
    assert plan.guarantee == vp.Guarantee(0.5, 0.0)
    assert (level["sensitivity"], level["scale"], level["threshold"]) == (20, plan.scale, plan.threshold)
    assert "(0.5, 0)-DP" in str(plan)
    assert "17 symbols" in str(plan)
    assert str(vp.Sequences(alphabet=["secret"])).count("secret") == 0


@pytest.mark.parametrize("epsilon", [1e-9, 1e5])
def test_budgets_that_are_out_of_range_are_rejected(epsilon):
    """An epsilon that is too small for integers of 64 bits, or too large to protect any user, is rejected."""
    with pytest.raises(vp.errors.BudgetError, match="epsilon"):
        vp.Sequences(alphabet=["a"]).plan(vp.Budget(epsilon))


def test_a_corpus_of_items_is_rejected():
    """Sequences require an order, which items do not have."""
    corpus = read_engine(pl.DataFrame({"who": [1], "what": ["a"]}), user="who", items="what")
    with pytest.raises(vp.errors.InputError, match="order"):
        vp.Sequences(alphabet=["a"]).release(corpus, vp.Budget(1))


def as_lists(symbols, end):
    lists, current = [], []
    for symbol in symbols.tolist():
        if symbol == end:
            lists.append(current)
            current = []
        else:
            current.append("abcd"[symbol])
    assert not current
    return lists


USERS = st.lists(
    st.lists(st.lists(st.sampled_from("abcdz"), max_size=6), min_size=1, max_size=4), min_size=1, max_size=6
)


def test_a_plan_of_single_symbols_has_no_threshold():
    """If only single symbols are counted, no symbol is a context, so the text does not mention contexts."""
    plan = vp.Sequences(max_gram=1, alphabet=["home", "news"]).plan(vp.Budget(1))
    assert plan.threshold is None
    assert "context" not in str(plan)


@pytest.mark.jit  # Without compiled kernels, long inputs would take minutes.
@pytest.mark.usefixtures("few_sessions_in_test")  # The test compares texts, not the accuracy of answers.
def test_the_plan_states_that_long_sequences_get_more_noise():
    """Without a max_length, the stated noise is for up to 20 counted steps. The page contains the executed noise."""
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"who": range(2000), "pages": [rng.choice(["home", "news"], 40).tolist()] * 2000})
    corpus = read_engine(frame, user="who", sequence="pages")
    plan = vp.Sequences(max_gram=1, alphabet=["home", "news"]).plan(vp.Budget(1))
    model = vp.Sequences(max_gram=1, alphabet=["home", "news"]).release(corpus, vp.Budget(1), seed=1)
    ran = float(model.tree.scales[0])
    assert model.counted_steps > 20
    assert ran > plan.scale
    assert f"noise scale {plan.scale:.6g} or less for up to 20 counted steps (in proportion" in str(plan)
    given = vp.Sequences(max_length=20, max_gram=1, alphabet=["home", "news"]).plan(vp.Budget(1))
    assert f"noise scale {given.scale:.6g} or less\n" in str(given) + "\n"
    page = report_of_model(model, {}).decode()
    assert plain(ran) in page
    assert plain(plan.scale) not in page


@given(USERS, st.integers(1, 8))
def test_documents_of_a_user_are_joined_and_truncated(users, most):
    """The documents of a user are joined without unknown symbols, and the result is truncated.

    Users without a known symbol are omitted.
    """
    rows = [(number, document) for number, documents in enumerate(users) for document in documents]
    corpus = read_engine(
        pl.DataFrame(rows, schema={"who": pl.Int64, "what": pl.List(pl.String)}, orient="row"),
        user="who",
        sequence="what",
    )
    joined = [naive.truncate([x for document in documents for x in document], "abcd", most) for documents in users]
    found = one_sequence_each(corpus, tuple("abcd"), most, None)
    assert as_lists(found, 4) == [each for each in joined if each]


@given(USERS, st.integers(1, 8), st.integers(0, 1000))
def test_sequences_are_sampled(users, most, seed):
    """For each user, one document with a known symbol is drawn and truncated, regardless of other users."""
    rows = [(number, document) for number, documents in enumerate(users) for document in documents]
    schema = {"who": pl.Int64, "what": pl.List(pl.String)}
    corpus = read_engine(pl.DataFrame(rows, schema=schema, orient="row"), user="who", sequence="what")
    found = as_lists(one_sequence_each(corpus, tuple("abcd"), most, Secret.from_seed(seed)), 4)
    choices = [[cut for each in documents if (cut := naive.truncate(each, "abcd", most))] for documents in users]
    choices = [each for each in choices if each]
    assert len(found) == len(choices)
    assert all(one in own for one, own in zip(found, choices, strict=True))
    alone = read_engine(
        pl.DataFrame([row for row in rows if row[0] == 0], schema=schema, orient="row"), user="who", sequence="what"
    )
    first = as_lists(one_sequence_each(alone, tuple("abcd"), most, Secret.from_seed(seed)), 4)
    assert first == found[: len(first)]


def test_documents_are_sampled_evenly():
    """Each of three documents is drawn by a third of 6,000 users (false alarm below 1e-11)."""
    rows = [(user, [page]) for user in range(6000) for page in "abc"]
    schema = {"who": pl.Int64, "what": pl.List(pl.String)}
    corpus = read_engine(pl.DataFrame(rows, schema=schema, orient="row"), user="who", sequence="what")
    found = one_sequence_each(corpus, tuple("abc"), 5, Secret.fresh())
    assert np.abs(np.bincount(found[found < 3]) - 2000).max() < 7 * (6000 * 2 / 9) ** 0.5


@pytest.mark.jit
def test_a_large_alphabet_contains_all_symbols_that_occur(visits):
    """Only four of fifty thousand symbols occur, and these four get most of the probability despite the noise."""
    alphabet = PAGES + [f"word {number}" for number in range(50_000)]
    model = vp.Sequences(8, 3, alphabet=alphabet).release(visits, vp.Budget(4), seed=1)
    first = dict(model.next().iter_rows())
    assert sum(first.values()) == pytest.approx(1)
    assert sum(first[page] for page in PAGES) > 0.6
    assert model.n_users == pytest.approx(6000, rel=0.1)
    assert model.sample(100, seed=1).shape == (100, 2)
    with pytest.raises(vp.errors.InputError, match="next"):
        model.transitions()


def test_other_tokens_become_one_symbol(capsys):
    """Sequences keep their lengths, and a message contains the number of events outside of the alphabet."""
    rows = pl.DataFrame({"who": range(900), "pages": [["home", "serach", "buy"], ["x", "home"], ["y"]] * 300})
    corpus = read_engine(rows, user="who", sequence="pages")
    for alphabet in (["home", "search", "buy"], "find"):
        model = vp.Sequences(5, 3, alphabet, other="(other)").release(corpus, vp.Budget(60, 1e-6), seed=1)
        shares = dict(model.starting().select("symbol", "share").iter_rows())
        lengths = model.lengths()["share"].to_list()
        assert lengths[:3] == pytest.approx([1 / 3, 1 / 3, 1 / 3], abs=0.05)
        if alphabet != "find":
            assert model.alphabet == ("(other)", "buy", "home", "search")
            assert shares["(other)"] == pytest.approx(2 / 3, abs=0.05)
            said = capsys.readouterr().err
            assert "about 900 of the events are outside of the alphabet and count as the symbol for all others" in said
            assert model.plan.to_dict()["alphabet_size"] == 4
    assert model.plan.certificate.proof.alphabet is None


@pytest.mark.parametrize("other", ["home", "", 3])
def test_the_symbol_for_other_tokens_must_not_be_in_the_alphabet(other):
    """The symbol must be a string that is not in the alphabet."""
    with pytest.raises(vp.errors.InputError, match="`other`"):
        vp.Sequences(alphabet=["home"], other=other)
