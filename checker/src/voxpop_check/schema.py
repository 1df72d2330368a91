"""The fields of certificates of version 1. A field that is unknown, missing or unreadable raises an error.

A double represents its value exactly and becomes an exact ball. Whole numbers remain whole numbers.
"""

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from flint import arb, fmpq

from .balls import require


def _all(kind: Any, names: str) -> dict[str, Any]:
    return dict.fromkeys(names.split(), kind)


WEIGHTINGS = {"count", "weighted", "policy-laplace", "policy-gaussian", "capped"}
BOUNDING = {"name": WEIGHTINGS, **_all(int, "norm limit bits cutoff bound")}
FIRST = {"bounding": BOUNDING, "noise": {"gaussian", "laplace"}, "scale": arb, "threshold": int}
LATER_ROUND = {"bounding": BOUNDING, "cell": int, **_all(arb, "sigma mu part threshold drop? enough steps")}
CAPS, LISTED = {"items": [int], "weights": [[int]], "chances": [arb]}, {"size": int, "fingerprint": str}
NIGHT_LEVELS = {"listed": LISTED, "share": arb, "lowest": [int], "steps": [int], "tails": [arb]}
LEVELS = {"listed": LISTED, **_all(arb, "share step"), **_all([arb], "drops lowest tails enough")}
ROUNDS = {"pool": int, "first?": FIRST, "later": [LATER_ROUND], "caps": CAPS, "margin": arb, "known?": LEVELS}
CHARGED, COVER = {"each user", "everybody", "parts"}, {"columns": int, "sigma": arb}
LATER = {"charged": CHARGED, "passes": int, "cover?": COVER, **_all(arb, "square joining counting")}
CHOICE, SLACK = {"edges": [int], **_all(arb, "sigma square novel")}, _all(int, "passes pool rounds")
TREES, NIGHTS, SETS = {"contexts", "grams"}, "costs cutoffs factors thresholds", {"data_sets": [str], "known?": LISTED}
PROOFS: dict[str, dict[str, Any]] = {
    "adaptive rounds": {**SETS, "choice?": CHOICE, "rounds?": ROUNDS, "later?": LATER, "slack": SLACK},
    "threshold": {"first": FIRST, "later?": LATER},
    "optimal selection": {"delta": arb, "few": int},
    "counts": {"menu": [{"limits": [int], "sigma": arb}], "classes_sigma": arb, "chosen?": int, "known?": LISTED},
    "picks": {"picks": int, "candidates": int, "rate": arb},
    "votes": {**_all(arb, "rate again further"), **_all(int, "theta rounds"), "words": {"one", "many"}},
    "paths": {
        **{"tree": TREES, "finding?": "certificate"},
        **_all(Fraction, "epsilon least? per_noise?"),
        **_all(int, "alphabet? max_length max_gram usual?"),
    },
    "nights": {
        **_all(int, "pool bits cell"),
        **{"square": arb, "sigmas": [arb], "known?": NIGHT_LEVELS},
        **_all([int], NIGHTS),
    },
}
PROOFS["keys"] = {
    **{"edges": [int], "sets": int, "chosen?": int, "choosing": Fraction, "rest": Fraction},
    "menu": [{**_all(int, "limit reach"), "rate": Fraction, **_all(arb, "end coin")}],
    "parts?": {"rate": Fraction, "threshold": int, "sizing": Fraction},
    "rounds?": PROOFS["adaptive rounds"],
}
CLAIM = {"epsilon": arb, "delta": arb, "neighbours": {"one user added or removed"}}
FRAME = {"format": {"voxpop certificate"}, "version": int, "claim": CLAIM, "proof": set(PROOFS), "numbers": dict}


def certificate(value: Any) -> SimpleNamespace:
    """Read the claim of a certificate, the name of its proof, and the numbers of the proof."""
    frame: SimpleNamespace = _read(value, FRAME, "the certificate")
    require(frame.version == 1, "the version is not 1")
    frame.numbers = _read(frame.numbers, PROOFS[frame.proof], frame.proof)
    require(frame.claim.epsilon > 0 and 0 <= frame.claim.delta < 1, "the claim is out of range")
    return frame


def bounding(value: Any) -> SimpleNamespace:
    """Read how users are bounded in a pass of a transcript."""
    read: SimpleNamespace = _read(value, BOUNDING, "a pass")
    return read


def _read(value: Any, shape: Any, place: str) -> Any:
    """Return a JSON value, read according to the shape of its field."""
    if isinstance(shape, dict):
        require(isinstance(value, dict), f"{place} is not an object")
        names = {name.rstrip("?"): name for name in shape}
        require(value.keys() <= names.keys(), f"{place} has unknown fields")
        missing = [name for name, spelled in names.items() if spelled == name and value.get(name) is None]
        require(not missing, f"{place} lacks {', '.join(missing)}")
        read = {name: _read(value[name], shape[names[name]], name) for name in names if value.get(name) is not None}
        return SimpleNamespace(**{name: read.get(name) for name in names})
    if isinstance(shape, list):
        require(isinstance(value, list), f"{place} is not a list")
        return [_read(each, shape[0], place) for each in value]
    if isinstance(shape, set):
        require(isinstance(value, str) and value in shape, f"{place} is not one of {', '.join(sorted(shape))}")
        return value
    if shape == "certificate":
        return certificate(value)
    if shape is Fraction:
        require(isinstance(value, str) and value.replace("/", "", 1).isdecimal(), f"{place} is no fraction")
        above, _, below = value.partition("/")
        require(int(below or 1) > 0, f"{place} is no fraction")
        return Fraction(int(above), int(below or 1))
    if shape is arb:
        require(type(value) in (int, float) and arb(value).is_finite(), f"{place} is not a finite number")
        return arb(value)
    require(type(value) is shape, f"{place} is not of type {shape.__name__}")
    return value


def exact(x: arb) -> Fraction:
    """Return the value of a ball of radius 0."""
    mantissa, exponent = x.man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def ball(x: Fraction) -> arb:
    """Return a ball around a fraction."""
    return arb(fmpq(x.numerator, x.denominator))
