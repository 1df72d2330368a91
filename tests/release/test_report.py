"""Tests of `report.html`, which depends only on the release, agrees with its plan, and is safe for any tokens."""

import json
import re
import zlib
from base64 import b64encode
from dataclasses import replace
from fractions import Fraction
from functools import cache
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from math import exp
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tools.palette import palette

import voxpop as vp
from support.look import read_engine
from voxpop.mechanisms.ngrams import describe as about_ngrams
from voxpop.mechanisms.ngrams.charges import LengthRun
from voxpop.mechanisms.set_union import describe as about_union
from voxpop.privacy import guarantee as in_words
from voxpop.privacy.composition import total_of
from voxpop.privacy.planned import with_record
from voxpop.privacy.weightings.builtin import share_of
from voxpop.release.release import report_of
from voxpop.release.report.numbers import curve, optimal_chance, threshold_chance, users_for, voting_chance
from voxpop.release.report.page import json_for_html, story_of
from voxpop.release.result import StoredPlan
from voxpop.release.table import SCHEMA
from voxpop.release.verifying import verify

pytestmark = pytest.mark.usefixtures("fixed_secrets")

BUDGET = vp.Budget(4, 1e-7)
NASTY = ["</script><script>alert(1)</script>", "<!--", "a\"'&b", "\u202eevil", "\x00", "]]>", "{{ 7 * 7 }}", "\u2028"]
ASSETS = files("voxpop.release.report")


def release_of(grams, plan, guarantee=None):
    rows = sorted(grams, key=lambda gram: (len(gram), gram))  # Strings and their bytes in UTF-8 have the same order.
    table = pa.table({"gram": [list(row) for row in rows], "length": [len(row) for row in rows]}, schema=SCHEMA)
    return vp.Release(table, plan, guarantee or plan.guarantee)


def ngrams_plan(**fields):
    plan = vp.NGrams(max_length=3, **fields).plan(BUDGET)
    runs = (
        LengthRun(1, plan.lengths[0].sigma, None, None, plan.lengths[0].lowest_threshold),
        LengthRun(2, 3.5, 20.0, 400, 9.25, 6.0),
    )
    return with_record(plan, ran=runs)


def page_of(release):
    return report_of(release, {"release.parquet": "sha256:0"}).decode()


class Parsed(HTMLParser):
    """Collects the elements, attributes and texts of a page, and parses scripts and styles like a browser."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.raw, self.policy, self.text, self._open = [], [], "", [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.elements.append((tag, attrs))
        if attrs.get("http-equiv") == "Content-Security-Policy":
            self.policy = attrs["content"]
        if tag in ("script", "style"):
            self._open = (tag, attrs, [])

    def handle_data(self, data):
        (self._open[2] if self._open else self.text).append(data)

    def handle_endtag(self, tag):
        if self._open and tag == self._open[0]:
            self.raw.append((tag, self._open[1], "".join(self._open[2])))
            self._open = None


UNIONS = [
    vp.papers.SetUnion(100, "policy-gaussian", 5.0, "joint"),
    vp.papers.SetUnion(30, "weighted"),
    vp.papers.SetUnion(20, "count", accounting="joint"),
    vp.papers.SetUnion(20, "weighted-laplace", accounting="joint"),
    vp.papers.SetUnion(20, "policy-laplace", 0.5, "joint"),
    vp.papers.SetUnion(20, "count-laplace", accounting="joint"),
]


@pytest.mark.parametrize("union", UNIONS, ids=str)
@pytest.mark.parametrize("size", [1, 10, 20])
def test_probabilities_of_set_union_agree_with_the_plan(union, size):
    """The number of users needed, computed from the formula of the report, equals that of the plan."""
    plan = union.plan(BUDGET)
    numbers = plan.to_dict()
    last = numbers["passes"][-1]
    chance = threshold_chance(last, share_of(numbers["weighting"], last["noise"], numbers["max_items_per_user"], size))
    for probability in (0.001, 0.2, 0.5, 0.9, 0.99):
        assert users_for(chance, probability) == plan.users_needed(probability, per_user=size)


def test_probabilities_of_optimal_selection_agree_with_the_plan():
    """The number of users needed equals that of the plan."""
    plan = vp.papers.OptimalSelection().plan(BUDGET)
    chance = optimal_chance(plan.budget.epsilon, plan.budget.delta)
    assert [users_for(chance, p) for p in (0.01, 0.5, 0.999)] == [plan.users_needed(p) for p in (0.01, 0.5, 0.999)]


def test_probabilities_of_ngrams_agree_with_the_plan():
    """If the executed noise is replaced by the planned noise, the number of users needed equals that of the plan."""
    plan = vp.NGrams(max_length=4, max_phrases_per_user=50).plan(BUDGET)
    voting = plan.mechanism.voting(2)
    for each in plan.lengths[1:]:
        exact = voting.finest(each.sigma, voting.threshold(each.sigma, 1, 10)).threshold
        run = {"length": each.length, "sigma": each.sigma, "threshold": exact}
        chance = about_ngrams._chance(plan.to_dict(), run)
        for probability in (0.1, 0.5, 0.9):
            assert users_for(chance, probability) == plan.users_needed(probability, length=each.length)


def test_probabilities_of_heavy_hitters_agree_with_the_plan():
    """For the worst case of the plan, the number of users needed equals that of the plan."""
    plan = vp.HeavyHitters().plan(BUDGET)
    chance = voting_chance(plan.to_dict()["passes"][0])
    assert [users_for(chance, p) for p in (0.1, 0.5, 0.9)] == [plan.users_needed(p) for p in (0.1, 0.5, 0.9)]


def test_no_number_of_users_is_shown_for_a_cutoff_below_the_threshold():
    """If a weight cannot reach the threshold, the report contains no number of users."""
    numbers = {"pass": "threshold", "noise": "gaussian", "scale": 1.0, "threshold": 9.0, "cutoff": 5.0}
    assert users_for(threshold_chance(numbers, 1.0), 0.5) is None
    facts = about_union.facts_of({"weighting": "weighted", "max_items_per_user": 3, "passes": [numbers]})
    assert curve(facts.chance(1)) == []


def test_the_report_mentions_the_independent_check_and_the_table_of_proofs():
    """The independent check is the program `voxpop-check`."""
    release = vp.Items(max_items_per_user=10).release(
        vp.read({"who": [1], "what": ["x"]}, user="who", items="what"), BUDGET
    )
    page = page_of(release)
    signed = page[page.index('id="signing"') :]
    assert "<code>voxpop-check</code> proves the guarantee by certificate" in signed
    assert "docs/privacy/proved.md" in signed
    assert "voxpop-check" not in report_of(release, {}).decode()


PLANS = {
    "union.html": lambda: vp.Items(max_items_per_user=10).plan(BUDGET),
    "ngrams.html": lambda: ngrams_plan(max_phrases_per_user=10),
    "hitters.html": lambda: vp.HeavyHitters().plan(BUDGET),
}


@cache
def plan_of(name):
    """Return the plan whose report has the text of this name."""
    return PLANS[name]()


@pytest.mark.parametrize("name", PLANS)
def test_the_page_of_a_mechanism_contains_its_text(name):
    """A plan and the same plan loaded from a file have the same page."""
    plan = plan_of(name)
    grams = [("tea",), ("milk",)] + ([("milk", "tea")] if name == "ngrams.html" else [])
    assert story_of(plan.to_dict(), {1: 2, 2: 1}).words == name
    page = page_of(release_of(grams, plan))
    loaded = StoredPlan(json.loads(json.dumps(plan.to_dict())))
    assert page == page_of(release_of(grams, loaded, plan.guarantee))


@pytest.mark.parametrize("numbers", [{}, {"mechanism": "items"}, {"mechanism": "n-grams", "passes": []}, {"x": [1]}])
def test_unknown_plans_have_a_general_text(numbers):
    """A plan of an unknown mechanism is shown as numbers, without statements about them."""
    page = page_of(release_of([("tea",)], StoredPlan(numbers), vp.Guarantee(4, 1e-7)))
    assert "has no text for the plan of this release" in page
    assert "How many people it took" not in page


def test_the_page_is_saved_and_depends_only_on_the_release(tmp_path):
    """Saving, loading and saving again give the same page, which contains the checksums of the other files."""
    release = release_of([("tea",), ("milk",)], plan_of("union.html"))
    release.save(tmp_path / "once")
    vp.load(tmp_path / "once").save(tmp_path / "again")
    page = (tmp_path / "once" / "report.html").read_bytes()
    assert page == (tmp_path / "again" / "report.html").read_bytes()
    for name in ("release.parquet", "release.json"):
        assert sha256((tmp_path / "once" / name).read_bytes()).hexdigest() in page.decode()


def test_grams_do_not_become_markup():
    """Tokens with markup occur only in the packed list, so the page has the same elements as without these tokens."""
    plan = plan_of("union.html")
    page, plain = (Parsed(page_of(release_of(grams, plan))) for grams in ([(each,) for each in NASTY], [("tea",)]))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in plain.elements]
    assert "alert(1)" not in "".join(page.text)
    assert "7 * 7" not in "".join(page.text)


def test_values_of_a_plan_are_escaped():
    """A plan or guarantee loaded from a file cannot add markup to the page."""
    numbers = {"mechanism": "<img src=x>", "note": "</script><b>", "table": [{"<i>": "<i>"}]}
    guarantee = vp.Guarantee(4, 1e-7, "</script><script>alert(2)</script>")
    page = Parsed(page_of(release_of([("tea",)], StoredPlan(numbers), guarantee)))
    plain = Parsed(page_of(release_of([("tea",)], StoredPlan({"mechanism": "x", "note": "y"}), guarantee)))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in plain.elements]
    assert all("alert(2)" not in text for tag, attrs, text in page.raw if attrs.get("type") is None)


@given(st.recursive(st.text() | st.floats(allow_nan=False, allow_infinity=False), st.lists, max_leaves=10))
def test_json_in_the_page_is_inert(content):
    """JSON in the page cannot end a script element, and is parsed without changes."""
    text = json_for_html(content)
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert json.loads(text) == content


def test_the_security_policy_allows_only_the_scripts_of_the_page():
    """The policy permits the scripts and styles of the page by their hashes. It permits no network access."""
    page = Parsed(page_of(release_of([("tea",)], plan_of("union.html"))))
    policy = dict(part.strip().split(" ", 1) for part in page.policy.split(";"))
    assert policy["default-src"] == "'none'"
    assert "unsafe" not in page.policy
    assert "http" not in page.policy
    for tag, attrs, text in page.raw:
        if attrs.get("type") is None:
            digest = b64encode(sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy[f"{tag}-src"]
    for tag, attrs in page.elements:
        assert not {"src", "srcset", "action", "style", "onclick"} & attrs.keys(), tag
        assert attrs.get("href", "#").startswith("#")


def test_the_page_of_a_seeded_release_is_marked():
    """The title, an alert and the guarantee mark the release as not private, and the factor e^epsilon is omitted."""
    plan = plan_of("union.html")
    grams = [("tea",)]
    private = page_of(release_of(grams, plan))
    seeded = page_of(release_of(grams, plan, vp.Guarantee(4, 1e-7, private=False)))
    assert "<title>NOT PRIVATE" in seeded
    assert 'role="alert"' in seeded
    assert "<b>54.6</b>" not in seeded
    assert "made with a seed" in seeded
    assert "<b>54.6</b>" in private
    assert "NOT PRIVATE" not in private
    assert 'role="alert"' not in private


def test_the_page_contains_the_numbers_of_the_executed_rounds():
    """Users needed, spurious phrases and shares of the budget are computed from the rounds that ran."""
    plan = ngrams_plan(max_phrases_per_user=20, max_spurious_share=0.02)
    sizes = {1: 300, 2: 50}
    story = story_of(plan.to_dict(), sizes)
    assert story.values["spurious"] == pytest.approx(0.02 * 300)
    assert sum(cost["share"] for cost in story.costs) == pytest.approx(1.0)
    parts = {(cost["length"], cost["part"]): cost["share"] for cost in story.costs}
    assert parts[2, "vote"] / parts[2, "forecast"] == pytest.approx((20.0 / 3.5) ** 2)
    # The share of length 1 is the sum over its rounds.
    first = sum(row["scale"] ** -2 for row in plan.to_dict()["passes"] if row["pass"] in ("threshold", "round"))
    assert parts[1, "vote"] == pytest.approx(first / (first + plan.later))
    assert [row[1] for row in story.needed.rows] == ["300", "50"]


@given(st.floats(1e-300, 1e300))
def test_bounds_in_texts_are_rounded_up(number):
    """A bound in the text is never below the number, and at most 1.1 % above it (plus 1 for numbers from 1000)."""
    shown = Fraction(in_words.at_most(number).replace(",", ""))
    assert Fraction(number) <= shown <= Fraction(number) * Fraction("1.011") + (1 if number >= 1000 else 0)


def test_saving_counts_and_rankings_updates_the_report(tmp_path):
    """After counts, a ranking or metadata are saved, the report contains the total guarantee of all saved results.

    It also contains the checksums of all tables.
    """
    said = ["thank you very much", "see you soon"] * 1500
    posts = vp.read({"who": list(range(3000)), "what": said}, user="who", text="what")
    release, budget = vp.Items(max_items_per_user=4).release(posts, BUDGET), vp.Budget(1.3, 1e-7)
    saved, page = [release], tmp_path / "words" / "report.html"
    release.save(page.parent)
    for result, titles in (
        (release.top(posts, budget, k=3), ["Most users first"]),
        (release.count(posts, budget), ["Noisy counts", "Most users first"]),
        (release.with_metadata(title="Thanks"), ["Noisy counts", "Most users first", "Thanks"]),
    ):
        result.save(page.parent)
        saved += [] if isinstance(result, vp.Release) else [result]
        [stated] = re.findall(r"</span>(\([0-9.]+, [0-9e.-]+\)-DP)", page.read_text())
        total = total_of([(each.guarantee, None) for each in saved])
        assert str(total.adaptive).startswith(stated)
        assert total.if_fixed in page.read_text()
        assert all(title in page.read_text() for title in titles)
        for table in page.parent.glob("*.parquet"):
            assert sha256(table.read_bytes()).hexdigest() in page.read_text()
        verify(page.parent)


def test_pages_of_counts_and_rankings_list_only_what_they_omit_themselves():
    """The pages also contain the epsilon of the total guarantee."""
    said = ["thank you very much", "see you soon"] * 1500
    posts = vp.read({"who": list(range(3000)), "what": said}, user="who", text="what")
    release, budget = vp.Items(max_items_per_user=4).release(posts, BUDGET), vp.Budget(1.3, 1e-7)
    pages = [each.report().html for each in (release, release.count(posts, budget), release.top(posts, budget, k=3))]
    assert ["an order by frequency" in page for page in pages] == [True, False, False]
    assert ["the number of users of an item" in page for page in pages] == [True, False, True]
    assert ["items, with noisy counts" in page for page in pages] == [False, True, False]
    assert not any("At this epsilon" in page for page in pages[1:])  # This statement applies only to the release.
    for page in pages:
        [stated] = re.findall(r"</span>\(([0-9.]+), [0-9e-]+\)-DP", page)
        assert f"<dt>Epsilon</dt><dd>{stated}</dd>" in page


@given(st.floats(0.01, 12))
def test_the_factor_in_texts_is_rounded_up(epsilon):
    """The sentence about epsilon rounds its factor up, and does not mention a delta of 0."""
    sentence = in_words.meaning(vp.Guarantee(epsilon, 0))
    stated = re.search(r"at most a factor of ([0-9.,]+) \(e\^[0-9.e+-]+\)\.$", sentence).group(1)
    assert exp(epsilon) * (1 - 1e-12) <= float(stated.replace(",", "")) <= 1.011 * exp(epsilon) + 1
    assert stated == in_words.factor(epsilon)


def test_the_probability_of_a_second_vote_is_a_percentage():
    """The report of heavy hitters shows the probability of a second vote as a percentage."""
    page = page_of(release_of([("tea",)], vp.HeavyHitters().plan(BUDGET)))
    assert re.search(r"voted once, with probability [0-9.]+ % a second time", page)


@given(st.floats(0, 1))
def test_percentages_are_rounded_up(share):
    """A percentage is never below the share, and is 100 % only for a share of 1."""
    shown = in_words.percent_at_most(share)
    if shown.startswith("just"):
        assert share < 1
    else:
        # As a double, 0.1 is slightly more than 1/10, but it is shown as 10 %.
        assert Fraction(shown.removesuffix(" %")) >= Fraction(share) * 100 * (1 - Fraction(1, 10**14))
        assert shown != "100 %" or share == 1


def outcomes_of_the_worst(epsilon, delta):
    """Return the probability of each outcome with and without the user, in decreasing order of their ratio.

    The mechanism with these outcomes dominates every private mechanism.
    """
    kept = (1 - delta) / (1 + exp(epsilon))
    return [(delta, 0.0), (kept * exp(epsilon), kept), (kept, kept * exp(epsilon)), (0.0, delta)]


@given(
    st.floats(0.01, 8), st.floats(1e-12, 9e-3) | st.just(0.0), st.floats(1e-9, 0.999), st.just(0.0) | st.floats(1e-9, 1)
)
def test_the_table_of_odds_is_an_upper_bound(epsilon, delta, before, taken):
    """With the worst mechanism, no conclusion about a user is more certain than the table states.

    The bound applies to conclusions with a probability of at least 100 delta if the user is in the data.
    """
    (telling, _), (likely, unlikely), *_ = outcomes_of_the_worst(epsilon, delta)
    with_user, without = telling + taken * likely, taken * unlikely
    assume(with_user >= 100 * delta and without > 0)
    after = before * with_user / (before * with_user + (1 - before) * without)
    assert after <= in_words.odds_after(epsilon, delta, before) * (1 + 1e-9)


def test_the_table_of_odds_is_informative_at_epsilon_8():
    """The four values of the table are different, and none of them is "just below 100 %"."""
    page = page_of(release_of([("tea",)], StoredPlan({}), vp.Guarantee(8, 1e-7)))
    shown = re.findall(r"<tr><th scope=\"row\">1 in [\d,]+</th><td>(.*?)</td>", page)
    assert shown == ["1 in 333", "23.2 %", "96.9 %", "99.97 %"]
    assert "1 in 100,000 releases" in page


@pytest.mark.parametrize(
    ("epsilon", "delta", "said"),
    [
        (4, 1e-5, []),
        (4.1, 1e-7, ["Epsilon 4.1 is large"]),
        (50, 1e-2, ["Epsilon 50 gives hardly any protection", "Delta 0.01 is large"]),
        (1, 0.5, ["It is too large for any number of people"]),
        (1, 0, []),
    ],
)
def test_a_large_epsilon_or_delta_has_a_caution(epsilon, delta, said):
    """For an epsilon above 4 or a delta above 1e-5, the page has a caution in amber instead of a tick."""
    guarantee = vp.Guarantee(epsilon, delta)
    found = in_words.cautions(guarantee)
    assert len(found) == len(said)
    assert all(any(part in each for each in found) for part in said)
    page = page_of(release_of([("tea",)], StoredPlan({}), guarantee))
    assert ("✓" in page) == (not said)
    assert ('class="caution"' in page) == bool(said)
    assert not re.search(r"\d{1,3}(,\d{3}){4}", page)


def test_a_guarantee_that_is_not_private_has_no_cautions():
    """The report has an alert instead of cautions."""
    assert in_words.cautions(vp.Guarantee(50, 1e-2, private=False)) == []


@pytest.mark.parametrize(
    ("delta", "words"),
    [
        (0.02, "It is too large for any number of people."),
        (0.01, "It suits the data of a single person."),
        (1e-3, "It suits at most 10 people."),
    ],
)
def test_a_large_delta_is_reported_with_the_number_of_people_that_it_fits(delta, words):
    """The text contains the singular for one person, and the plural otherwise."""
    assert any(words in each for each in in_words.cautions(vp.Guarantee(1, delta)))


@given(st.floats(1e-12, 1e-3))
def test_the_largest_number_of_people_with_a_small_delta_is_found(delta):
    """For n people, a small delta is at most 0.01 / n."""
    people = in_words.people_covered(delta)
    assert people * delta <= 0.01 * (1 + 1e-9)
    assert (people + 1) * delta > 0.01 * (1 - 1e-9)


SAID = {"title": "Words & phrases", "dataset": "Forum, 2026", "purpose": "keyboard", "operator": "<b>Ann</b>"}


def test_the_report_contains_the_metadata_of_the_operator(tmp_path):
    """The page, the record and the loaded release contain the title, data set, purpose, operator and date.

    The metadata changes nothing else.
    """
    release = release_of([("tea",), ("milk",)], plan_of("union.html"))
    release.with_metadata(**SAID, date="2026-11-22").save(tmp_path / "said")
    release.save(tmp_path / "unsaid")
    page = (tmp_path / "said" / "report.html").read_text()
    for shown in ("Words &amp; phrases", "Forum, 2026", "keyboard", "&lt;b&gt;Ann&lt;/b&gt;", "2026-11-22"):
        assert shown in page
    assert "not stated" not in page
    assert "not stated" in (tmp_path / "unsaid" / "report.html").read_text()
    again = vp.load(tmp_path / "said")
    assert again.metadata.to_dict() == {**SAID, "date": "2026-11-22"}
    assert again == release
    records = [json.loads((tmp_path / name / "release.json").read_text()) for name in ("said", "unsaid")]
    assert records[0].pop("metadata") == {**SAID, "date": "2026-11-22"}
    assert records[0] == records[1]


def test_metadata_can_be_added_later(tmp_path):
    """Saving the same release again with a title does not require `overwrite=True`, but saving another release does."""
    release = release_of([("tea",)], plan_of("union.html"))
    release.save(tmp_path / "here")
    vp.load(tmp_path / "here").with_metadata(title="Tea").save(tmp_path / "here")
    loaded = vp.load(tmp_path / "here")
    assert (loaded.metadata.title, len(loaded.metadata.date)) == ("Tea", 10)
    with pytest.raises(vp.errors.ReleaseError, match="already contains"):
        release_of([("milk",)], plan_of("union.html")).with_metadata(title="Milk").save(tmp_path / "here")


@pytest.mark.parametrize(
    "said", [{"title": "two\nlines"}, {"operator": "x" * 501}, {"date": "22.11.2026"}, {"purpose": 3}]
)
def test_metadata_must_be_one_line(tmp_path, said):
    """Metadata other than one line of text is rejected before any file is written."""
    with pytest.raises(vp.errors.InputError, match=next(iter(said))):
        release_of([("tea",)], plan_of("union.html")).with_metadata(**said)
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize("said", [3, ["title"], {"title": 3}, {"date": "yesterday"}, {"title": "x" * 501}])
def test_a_record_with_damaged_metadata_is_rejected(tmp_path, said):
    """Metadata from a file is checked like metadata from a caller."""
    import polars as pl

    release_of([("tea",)], plan_of("union.html")).save(tmp_path / "words")
    visits = read_engine(pl.DataFrame({"who": range(50), "pages": [["a"]] * 50}), user="who", sequence="pages")
    vp.Sequences(alphabet=["a"], max_length=2).release(visits, vp.Budget(2)).save(tmp_path / "model")
    for folder, record in (("words", "release.json"), ("model", "model.json")):
        path = tmp_path / folder / record
        path.write_text(json.dumps({**json.loads(path.read_text()), "metadata": said}))
        with pytest.raises(vp.errors.ReleaseError):
            vp.load(tmp_path / folder)


def test_a_release_contains_its_ledger_entry(tmp_path):
    """The report and the loaded release identify the ledger entry of the charge."""
    import polars as pl

    corpus = read_engine(pl.DataFrame({"who": range(500), "what": ["tea"] * 500}), user="who", items="what")
    account = vp.Ledger(tmp_path / "team.ledger").open("drinks", vp.Budget(8, 1e-6), create=True)
    vp.Items().release(corpus, BUDGET, ledger=account).save(tmp_path / "words")
    assert "entry 1 of &#34;drinks&#34;" in (tmp_path / "words" / "report.html").read_text()
    assert str(vp.load(tmp_path / "words").metadata.ledger) == 'entry 1 of "drinks", budget (8, 1e-06)'


def test_a_page_of_a_hundred_thousand_phrases_is_small():
    """A page of 100,000 phrases is smaller than 2 MB, far below the limit of 4 MB."""
    tokens = [f"{number * 2654435761 % 2**32:x}" for number in range(9000)]
    grams = {(token,) for token in tokens}
    grams |= {(tokens[i % 9000], tokens[i * i * 31 % 9000]) for i in range(60_000)}
    grams |= {(tokens[i % 9000], tokens[i * i * 31 % 9000], tokens[i * 7 % 9000]) for i in range(50_000)}
    page = page_of(release_of(grams, plan_of("union.html")))
    print(f"{len(grams):,} phrases: {len(page):,} bytes")
    assert len(page) < 2_000_000


def test_the_page_of_a_very_large_release_contains_only_the_first_grams(monkeypatch):
    """The page mentions the omission, and its headings contain the total number of grams."""
    from voxpop.release.report import page

    monkeypatch.setattr(page, "MOST_SHOWN", 2)
    text = page_of(release_of([("a",), ("b",), ("a", "b")], plan_of("ngrams.html")))
    assert "The first 2 of 3 in order of length" in text
    assert "3 phrases <span>" in text
    assert "up to the first" not in page_of(release_of([("a",), ("b",)], plan_of("ngrams.html")))


def test_the_chart_library_has_the_documented_checksum():
    """The README next to the vendored file contains the checksum."""
    content = ASSETS.joinpath("vendor/plot.min.js").read_bytes()
    assert sha256(content).hexdigest() in ASSETS.joinpath("vendor/README.md").read_text()
    assert b"</script" not in content
    assert len(zlib.compress(content)) < 150_000


def test_the_report_the_site_and_the_pictures_have_the_same_palette():
    """The report, the documentation site, its logo and the pictures have the same accent colour.

    Printed reports have the accent of the light palette.
    """
    style = ASSETS.joinpath("template/style.css").read_text()
    accent = palette()["accent"]
    root = Path(__file__).parents[2]
    assert f"--accent: {accent}" in style.split("@media print")[1]
    assert accent in (root / "docs" / "_static" / "voxpop.svg").read_text()
    for name in ("epsilon", "hitters", "phrases"):
        assert accent in (root / "docs" / "pictures" / f"{name}.svg").read_text()
    for name in ("docs/conf.py", "docs/pictures/draw.py"):
        assert "palette(" in (root / name).read_text()
        assert accent not in (root / name).read_text()


def luminance(colour):
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_text_has_sufficient_contrast(theme):
    """Every pair of text and background colours has a contrast of at least 4.5 (WCAG AA), in both themes."""
    colours = palette(theme)
    grounds = ("paper", "card", "sunk", "wash")
    pairs = [(ink, ground) for ink in ("ink", "soft", "accent") for ground in grounds]
    pairs += [("accent-ink", "accent"), ("bad", "bad-wash"), ("bad", "card"), ("mark-ink", "mark")]
    pairs += [("careful", "careful-wash"), ("careful", "card"), ("careful", "paper"), ("paper", "careful")]
    for ink, ground in pairs:
        light, dark = sorted((luminance(colours[ink]), luminance(colours[ground])), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)


@pytest.mark.parametrize(
    "union", [vp.papers.SetUnion(20, accounting="joint"), vp.Items(20), vp.papers.OptimalSelection()]
)
def test_the_report_contains_the_bound_of_min_users(union):
    """If `min_users` is given, the report contains its bound, rounded up.

    With optimal selection, items with fewer users are released with probability 0.
    """
    plans = [replace(union, min_users=each).plan(BUDGET) for each in (None, 40)]
    without, promised = (story_of(plan.to_dict(), {1: 5}) for plan in plans)
    assert "fewer than" not in without.needed.note
    chance = in_words.at_most(plans[1].released_with_few())
    assert f"fewer than 40 users is released with probability at most {chance}." in promised.needed.note
    if isinstance(union, vp.papers.OptimalSelection):
        assert min(count for count, share in promised.curves[0]["points"] if share > 0) >= 40
