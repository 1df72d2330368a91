"""Prove the delta of a Voxpop certificate without using Voxpop.

**What is proved.** A certificate claims that a release is (epsilon, delta)-differentially private for two collections
that differ in one user. The certificate contains the numbers of the mechanism, which are its noise scales, limits,
thresholds and caps. From only these numbers, `prove` computes an upper bound of delta at that epsilon. `prove` uses
ball arithmetic, in which every number is an interval that contains the exact value. Therefore "total <= delta" is a
proof if this package, python-flint and the processor are correct.

**Which formulas are used.** Each module names its page in `docs/privacy`:

| proof | module | formula |
|---|---|---|
| adaptive rounds, n-grams, profiles | `rounds` | n d + delta_G(epsilon; (n mu^2 + M)^(1/2)) + slack |
| threshold | `threshold` | the joint bound over all novel items; for Laplace noise the probability of a hit |
| optimal selection, counts, picks, paths | `public` | the page of each |
| votes | `votes` | the recursion F_i(c) over rounds |
| nights | `nights` | Phi(Phi^-1(W p0) + M^(1/2)) + delta_G(epsilon; M^(1/2)) |
| keys with counts | `keys` | L d of one number per key; the mean of rounds over the losses of pure releases |

`totals` composes the certificates of a folder, and repeats the charges of a ledger (composition.md, claims 1 and 2).
The proof of a ledger relies on the guarantees recorded in the ledger. The guarantee of each release is proved from the
folder of that release.

`bounding` computes the sensitivity of every weighting, `balls` contains the arithmetic, and `schema` defines the
fields.

**What is assumed.**

1. The theorems of these pages. Some of them are checked by machine in `proofs/`.
2. The program ran with the numbers of the certificate. The gate of the program compares each step with these numbers.
3. Users give weight, and rows are attributed to users, as the pages describe.
4. There are at most 2^33 users, and AES-256 is a pseudorandom permutation.

**Verdicts.** *proved*: the upper bound is at most the claimed delta. *not proved*: the upper bound is larger, which
does not mean that the claim is false. *refused*: the certificate is malformed or does not meet a condition of its
proof.
"""

from dataclasses import dataclass
from typing import Any

from flint import arb

from . import keys, nights, public, rounds, schema, threshold, votes
from .balls import CertificateError, require, up

__all__ = ["PROVED", "CertificateError", "Result", "prove"]
PROVED, NOT_PROVED = "proved", "not proved"
RULES = {
    "adaptive rounds": rounds.adaptive,
    "threshold": threshold.threshold,
    "optimal selection": public.selection,
    "counts": public.counts,
    "picks": public.picks,
    "paths": public.paths,
    "votes": votes.votes,
    "nights": nights.nights,
    "keys": keys.keys,
}


@dataclass(frozen=True)
class Result:
    """The terms of delta (name, bound, source), their sum, and whether the sum is at most the claim."""

    proof: str
    epsilon: arb
    delta: arb
    terms: list[tuple[str, arb, str]]
    total: arb
    verdict: str


def prove(value: Any) -> Result:
    """Bound the delta of a certificate, which is given as a JSON object.

    Raises:
        CertificateError: The certificate is malformed or does not meet a condition of its proof.
    """
    frame = schema.certificate(value)
    epsilon, delta, numbers = frame.claim.epsilon, frame.claim.delta, frame.numbers
    terms = RULES[frame.proof](numbers, epsilon, delta)
    if frame.proof == "paths" and numbers.finding is not None:
        found = prove(value["numbers"]["finding"])
        require(found.verdict == PROVED, "the certificate of the release that found the alphabet is not proved")
        terms += found.terms
    require(all(bound.is_finite() for _, bound, _ in terms), "a term is not finite")
    total = up(sum((up(bound) for _, bound, _ in terms), arb(0)))
    return Result(frame.proof, epsilon, delta, terms, total, PROVED if total <= delta else NOT_PROVED)
