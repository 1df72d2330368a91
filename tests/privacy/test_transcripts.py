"""Tests that certificates and transcripts contain only numbers of the plan and numbers from released results."""

import json
from fractions import Fraction
from functools import cache

import polars as pl
import pytest

import voxpop as vp
from support.look import read_engine
from voxpop.privacy.certificate import check
from voxpop.privacy.gate.walks import later_after
from voxpop.privacy.passes import Certificate

BUDGET = vp.Budget(4, 1e-7)
COMMON = ["good morning to all", "good night to all", "thank you", "thank you all"]


pytestmark = pytest.mark.usefixtures("few_sessions")


@cache
def read(strangers, **how):
    """Return a corpus of users with common phrases, and of `strangers` users with only unique words."""
    rows = [(user, phrase) for user in range(1500) for phrase in (COMMON[user % 4], COMMON[(user + 1) % 4])]
    rows += [(10_000 + user, f"w{user}a w{user}b w{user}c") for user in range(strangers)]
    return read_engine(pl.DataFrame(rows, schema=["who", "what"], orient="row"), user="who", **how)


def released(mechanism, strangers, **how):
    """Return a release with a seed."""
    return mechanism.release(read(strangers, **how), BUDGET, seed=7)


MECHANISMS = {
    "items": (vp.Items(), {"text": "what"}),
    "set union, limit": (vp.Items(max_items_per_user=20), {"text": "what"}),
    "policy gaussian": (vp.papers.SetUnion(20, "policy-gaussian", 5.0, "joint"), {"text": "what"}),
    "optimal selection": (vp.papers.OptimalSelection(), {"text": "what"}),
    "n-grams": (vp.NGrams(max_length=3), {"text": "what"}),
    "DPNE": (vp.papers.DPNE(max_length=3), {"text": "what"}),
    "heavy hitters": (vp.HeavyHitters(max_length=4), {"text": "what"}),
    "sequences": (vp.Sequences(alphabet=["good", "night", "all", "thank"], max_length=5), {"text": "what"}),
}


@pytest.mark.jit
@pytest.mark.parametrize("name", MECHANISMS)
def test_collections_with_the_same_release_have_the_same_files(name, tmp_path):
    """Twenty more users change no saved byte, because no private number, such as the number of rows, is saved."""
    mechanism, how = MECHANISMS[name]
    for strangers in (0, 20):
        released(mechanism, strangers, **how).save(tmp_path / str(strangers))
    one, other = ({each.name: each.read_bytes() for each in sorted((tmp_path / n).iterdir())} for n in ("0", "20"))
    assert one == other
    (record,) = (json.loads(one[file]) for file in ("release.json", "model.json") if file in one)
    assert record["transcript"]
    assert check(Certificate.from_dict(record["certificate"])) <= record["certificate"]["claim"]["delta"]
    again = vp.load(tmp_path / "0").plan
    assert again.certificate.to_dict() == record["certificate"]
    assert again.transcript == record["transcript"]


@pytest.mark.jit
def test_collections_with_the_same_counts_have_the_same_files(tmp_path):
    """Twenty more users without released words change no saved byte of counts and rankings."""
    words = released(vp.Items(max_items_per_user=20), 0, text="what")
    found = []
    for strangers in (0, 20):
        corpus, folder = read(strangers, text="what"), tmp_path / str(strangers)
        words.save(folder)
        words.count(corpus, BUDGET, seed=3).save(folder)
        words.top(corpus, BUDGET, k=2, seed=3).save(folder)
        found.append({each.name: each.read_bytes() for each in sorted(folder.iterdir())})
    assert found[0] == found[1]
    assert json.loads(found[0]["counts.json"])["transcript"]


@pytest.mark.jit
def test_every_pass_in_the_transcript_of_n_grams_has_the_required_noise():
    """The noise follows from the charge of the pass, and charges of all users add up to at most the cap."""
    plan = released(vp.NGrams(max_length=3), 0, text="what").plan
    later, passes = later_after(plan.certificate.proof), [each for each in plan.transcript if "cost" in each]
    assert len(passes) >= 3
    for each in passes:
        bits, limit = each["bounding"]["bits"], each["bounding"]["limit"]
        error = 0.0 if each["bounding"]["name"] == "weighted" else 4 * 2.0**-50 + limit**0.5 / 2**bits
        square = (Fraction(1 + 2.0**34 * error) / Fraction(each["sigma"])) ** 2
        assert square <= Fraction(later.square) * each["cost"] / 2**40 * (1 + Fraction(1, 2**40))
    assert sum(each["cost"] for each in passes if each["rates"] is None) <= 2**40


PLANNED = MECHANISMS | {
    "profile": (vp.ProfileMechanism({"city": "string", "year": "int64"}), {}),
    "keys": (vp.KeyCounts({"city": "string", "year": "int64"}, [("city", "year")]), {}),
}
CHANGES = [
    ("profile", ("later", "counting"), 1.01),
    ("keys", ("choosing",), 1.01),
    ("keys", ("rest",), 1.01),
    ("keys", ("menu", 1, "rate"), 1.01),
    ("keys", ("menu", 0, "coin"), 1.01),
    ("keys", ("menu", 2, "end"), 1.5),
    ("keys", ("menu", 2, "reach"), 0.97),
    ("keys", ("menu", 1, "limit"), 1.5),
    ("keys", ("rounds", "choice", "square"), 1.01),
    ("keys", ("rounds", "choice", "novel"), 1.01),
    ("keys", ("rounds", "later", "counting"), 1.01),
    ("profile", ("later", "cover", "sigma"), 0.99),
    ("items", ("choice", "sigma"), 0.99),
    ("items", ("choice", "square"), 1.01),
    ("items", ("choice", "novel"), 1.01),
    ("items", ("slack", "passes"), 1e14),
    ("set union, limit", ("rounds", "first", "threshold"), 0.9),
    ("set union, limit", ("rounds", "later", 19, "threshold"), 0.99),
    ("set union, limit", ("rounds", "later", 0, "mu"), 0.99),
    ("set union, limit", ("rounds", "pool"), 1.01),
    ("set union, limit", ("rounds", "caps", "chances", -1), 1.01),
    ("policy gaussian", ("first", "scale"), 0.99),
    ("policy gaussian", ("first", "threshold"), 0.99),
    ("policy gaussian", ("first", "bounding", "limit"), 1.1),
    ("policy gaussian", ("first", "bounding", "bits"), 0.5),
    ("optimal selection", ("delta",), 1.01),
    ("n-grams", ("later", "square"), 1.01),
    ("DPNE", ("later", "square"), 1.6),
    ("heavy hitters", ("rate",), 1.01),
    ("heavy hitters", ("theta",), 0.9),
    ("heavy hitters", ("rounds",), 2),
    ("sequences", ("epsilon",), 1.01),
]


@pytest.mark.jit
@pytest.mark.parametrize(("name", "path", "factor"), CHANGES, ids=lambda each: str(each).replace(" ", ""))
def test_a_certificate_with_an_unsafe_number_is_rejected(name, path, factor):
    """A certificate with less noise, lower thresholds or larger caps exceeds its claim or is rejected."""
    numbers = PLANNED[name][0].plan(BUDGET if name != "sequences" else vp.Budget(4)).certificate.to_dict()
    assert check(Certificate.from_dict(numbers)) <= numbers["claim"]["delta"]
    place = numbers["numbers"]
    for step in path[:-1]:
        place = place[step]
    value = place[path[-1]]
    if isinstance(value, str):
        place[path[-1]] = str(Fraction(value) * Fraction(101, 100))
    else:
        place[path[-1]] = type(value)(value * factor)
    try:
        proved = check(Certificate.from_dict(numbers)) <= numbers["claim"]["delta"]
    except vp.errors.VoxpopError:
        return
    assert not proved
