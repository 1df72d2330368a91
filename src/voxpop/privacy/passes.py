"""The schema of certificates: the numbers on which a guarantee rests, as plain data. docs/privacy/certificate.md.

Whole numbers are exact. Every other number is a double, written so that it reads back as the same double, and stands
for exactly the value of this double. Fractions are texts such as "3/4".
"""

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, final

from voxpop.privacy.listed import KnownLevels, KnownList
from voxpop.privacy.stated import Stated, malformed

FORMAT, VERSION = "voxpop certificate", 1
_NEIGHBOURS = "one user added or removed"


@final
@dataclass(frozen=True, slots=True)
class Claim(Stated):
    """The promise to every user.

    Attributes:
        epsilon: of the guarantee.
        delta: of the guarantee.
        neighbours: how the two collections differ.
    """

    epsilon: float
    delta: float
    neighbours: str = _NEIGHBOURS


@final
@dataclass(frozen=True, slots=True)
class Bounding(Stated):
    """How a user is bounded: the weighting with all numbers of which its sensitivity is a function.

    Attributes:
        name: "policy-gaussian", "policy-laplace", "weighted", "count" or "custom"; in adaptive rounds "capped".
        norm: 1 where the noise is Laplace, 2 where it is Gaussian: the norm in which a user has weight 1.
        limit: most items of one user.
        bits: weights are whole multiples of 2^-bits, the units below.
        cutoff: weight at which items stop rising, in units; 0 for weightings without one.
        bound: largest change of the histogram by one user: 1, or 4 where users have individual sensitivities.
        error: of a custom weighting, the rounding of its shares as its author states it.
        least: of a custom weighting, the least weight of an item that no earlier user holds, as its author states it.
    """

    name: str
    norm: int
    limit: int
    bits: int
    cutoff: int
    bound: int = 1
    error: float | None = None
    least: float | None = None


@final
@dataclass(frozen=True, slots=True)
class Threshold(Stated):
    """A pass that releases the items whose weight plus noise reaches a threshold.

    Attributes:
        bounding: of a user.
        noise: "gaussian" or "laplace".
        scale: sigma of Gaussian noise, b of Laplace noise, in weight.
        threshold: in units of the grid.
    """

    bounding: Bounding
    noise: Literal["gaussian", "laplace"]
    scale: float
    threshold: int


@final
@dataclass(frozen=True, slots=True)
class Round(Stated):
    """One adaptive round: noise on every undecided item of every pool, and the levels of the cumulative score.

    Attributes:
        bounding: of a user; the caps are those of all rounds.
        sigma: standard deviation of the noise, in weight.
        cell: the number of units of which noisy weights are whole multiples.
        mu: the shift by a weight of 1 in standard deviations, as charged: at least sensitivity / sigma.
        part: factor of the noisy weight, in standard deviations, in the score.
        threshold: of the score, in standard deviations of its noise.
        drop: the drop threshold, likewise; none in the last round.
        enough: score at which an item can use no more weight in the next round. Nothing private depends on it.
        steps: steps of the next cutoff by which a score of 1 is raised. Nothing private depends on it.
    """

    bounding: Bounding
    sigma: float
    cell: int
    mu: float
    part: float
    threshold: float
    drop: float | None = None
    enough: float = 0.0
    steps: float = 0.0


@final
@dataclass(frozen=True, slots=True)
class CapLevels(Stated):
    """The largest weights of a user for an item, by the number of items in its pool that are not released.

    Attributes:
        items: by level, the most items that it serves; rising, the last is the pool.
        weights: by level and round, the most weight of an item, in 2^-30.
        chances: by level, the largest chance that one item is drawn.
    """

    items: tuple[int, ...]
    weights: tuple[tuple[int, ...], ...]
    chances: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True)
class Rounds(Stated):
    """All adaptive rounds of one data set, in the order in which they run.

    Attributes:
        pool: most items of one user in all rounds after the first; with a list, most items that are not on it.
        first: the first round; none where the candidates are public.
        later: the rounds that add up the score.
        caps: of the later rounds.
        margin: most by which the compared score may differ from the exact one, in standard deviations.
        known: how items of a public list are decided; none without a list.
    """

    pool: int
    first: Threshold | None
    later: tuple[Round, ...]
    caps: CapLevels
    margin: float
    known: KnownLevels | None = None

    @property
    def listed(self) -> KnownList | None:
        """The public list; None without one."""
        return None if self.known is None else self.known.listed


@final
@dataclass(frozen=True, slots=True)
class Choice(Stated):
    """A private choice of the rounds, and the caps that any chosen rounds keep.

    Attributes:
        edges: numbers of distinct items at which the next class of users begins.
        sigma: standard deviation of the noise on the number of users in a class, rounded to whole users.
        square: most mu^2 of the rounds.
        novel: largest probability that the rounds release a novel item.
    """

    edges: tuple[int, ...]
    sigma: float
    square: float
    novel: float


@final
@dataclass(frozen=True, slots=True)
class Cover(Stated):
    """Noisy sums of the users' shares of rows with a released value and without, two for each column.

    Attributes:
        columns: their number; the square of the sensitivity.
        sigma: standard deviation of the noise, in shares.
    """

    columns: int
    sigma: float


@final
@dataclass(frozen=True, slots=True)
class Later(Stated):
    """Gaussian releases about released items, chosen on the way under a cap on mu^2.

    Attributes:
        square: the cap: most mu^2 of all of them, on every path.
        charged: "each user" pays for itself from the cap, "everybody" pays for every pass, or "parts" have caps below.
        passes: most votes, or passes of the parts.
        joining: mu^2 of rounds over public candidates.
        counting: mu^2 of counts.
        cover: sums of shares.
    """

    square: float
    charged: Literal["each user", "everybody", "parts"]
    passes: int
    joining: float = 0.0
    counting: float = 0.0
    cover: Cover | None = None


@final
@dataclass(frozen=True, slots=True)
class Slack(Stated):
    """The charges for finite arithmetic.

    Attributes:
        passes: decisions with 128 bits, of one data set; see `walk_slack`.
        pool: items of a user from which rounds draw with 64 bits; 0 where nothing is drawn.
        rounds: number of such draws.
    """

    passes: int
    pool: int = 0
    rounds: int = 0


@final
@dataclass(frozen=True, slots=True)
class AdaptiveProof(Stated):
    """Adaptive rounds: docs/privacy/adaptive.md and docs/privacy/limit.md.

    Attributes:
        data_sets: names of the data sets, each with such rounds; empty for one without a name.
        choice: how the rounds are chosen; none where they are fixed.
        rounds: the rounds; with a choice only after a release: those that were chosen.
        later: releases that follow.
        slack: of one data set, later releases left out.
        known: the public list that all rounds have; none without a list.
    """

    data_sets: tuple[str, ...]
    choice: Choice | None
    rounds: Rounds | None
    later: Later | None
    slack: Slack
    known: KnownList | None = None


@final
@dataclass(frozen=True, slots=True)
class ThresholdProof(Stated):
    """One pass over unknown items: docs/privacy/set-union.md. Later releases: docs/privacy/ngrams.md.

    Attributes:
        first: the pass.
        later: releases that follow.
    """

    first: Threshold
    later: Later | None


@final
@dataclass(frozen=True, slots=True)
class SelectionProof(Stated):
    """Optimal selection of items of users who hold one item each: docs/privacy/optimal-selection.md.

    Attributes:
        delta: of the rule.
        few: numbers of users up to which an item is never released.
    """

    delta: float
    few: int


@final
@dataclass(frozen=True, slots=True)
class Counted(Stated):
    """Counts of public grams.

    Attributes:
        limits: by length, most grams for which a user counts in full.
        sigma: standard deviation of the noise on every count, in users.
    """

    limits: tuple[int, ...]
    sigma: float


@final
@dataclass(frozen=True, slots=True)
class CountsProof(Stated):
    """Counts of public grams, under limits that may be chosen privately: docs/privacy/counts.md.

    Attributes:
        menu: one of them runs.
        classes_sigma: standard deviation of the noise on the number of users in a class; 0 where nothing is chosen.
        chosen: place in the menu, after a release.
    """

    menu: tuple[Counted, ...]
    classes_sigma: float
    chosen: int | None = None


@final
@dataclass(frozen=True, slots=True)
class PicksProof(Stated):
    """A ranking: the largest counts with Gumbel noise: docs/privacy/top.md.

    Attributes:
        picks: places.
        candidates: public grams.
        rate: of the noise, per user.
    """

    picks: int
    candidates: int
    rate: float


@final
@dataclass(frozen=True, slots=True)
class VotesProof(Stated):
    """Sampled votes and a threshold, without noise: docs/privacy/heavy-hitters.md.

    Attributes:
        rate: chance that a user votes in a round.
        again: chance of a second vote.
        further: chance of each vote after it.
        theta: votes that a prefix needs; most votes of a user.
        rounds: most rounds.
        words: "one" word of a user in all rounds, or "many".
    """

    rate: float
    again: float
    further: float
    theta: int
    rounds: int
    words: Literal["one", "many"]


@final
@dataclass(frozen=True, slots=True)
class PathsProof(Stated):
    """Integer Laplace noise along the paths of a tree: docs/privacy/sequences.md.

    Attributes:
        tree: "contexts" with two statistics of users before it, or "grams".
        epsilon: of the counts; shares add up to at most 1 of it on every path.
        alphabet: number of symbols; none before they are found.
        max_length, max_gram: most steps of a user that are counted, or fewer by released lengths; most levels.
        finding: the certificate by which the alphabet is found; none where it is given.
        least, per_noise, usual: of the `StepsRule` of contexts; none for grams. No `usual` if people gave the length.
    """

    tree: Literal["contexts", "grams"]
    epsilon: Fraction
    alphabet: int | None
    max_length: int
    max_gram: int
    finding: "Certificate | None"
    least: Fraction | None = None
    per_noise: Fraction | None = None
    usual: int | None = None


@final
@dataclass(frozen=True, slots=True)
class NightsProof(Stated):
    """A series of nights: docs/privacy/series.md. Lists are by night.

    Attributes:
        square: mu^2 that each user may spend in all nights.
        pool: most items of one user in all nights.
        bits: weights are whole multiples of 2^-bits, the units below.
        cell: units in a cell of noisy weights.
        costs: price of the night, in 2^-40 of all.
        sigmas: standard deviation of the noise, in weight.
        cutoffs: weight at which items stop rising, in units.
        factors: factor of a noisy weight, in cells, in the score.
        thresholds: score at which an item is released.
    """

    square: float
    pool: int
    bits: int
    cell: int
    costs: tuple[int, ...]
    sigmas: tuple[float, ...]
    cutoffs: tuple[int, ...]
    factors: tuple[int, ...]
    thresholds: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class KeyNoise(Stated):
    """Truncated geometric noise on the number of users of every key, which also selects the keys.

    Attributes:
        limit: the maximum number of keys per user.
        rate: of the noise, per user.
        reach: j, the largest noise.
        end: probability of each of -j and j.
        coin: probability that a key whose noisy number is j is released.
    """

    limit: int
    rate: Fraction
    reach: int
    end: float
    coin: float


@final
@dataclass(frozen=True, slots=True)
class KeysProof(Stated):
    """Keys with counts: docs/privacy/keys.md.

    Attributes:
        edges: numbers of distinct keys at which the next class of users begins; empty where nothing is chosen.
        choosing: rate of the noise on the number of users in a class; 0 where nothing is chosen.
        rest: rate of the noise on all shares of released and of other rows together; 0 if they are not measured.
        sets: number of sets of keys.
        menu: entries with one noisy number per key.
        rounds: the entry of adaptive rounds, with the counts that follow; none without it.
        chosen: place of the entry that ran, after a release; rounds come last.
    """

    edges: tuple[int, ...]
    choosing: Fraction
    rest: Fraction
    sets: int
    menu: tuple[KeyNoise, ...]
    rounds: AdaptiveProof | None
    chosen: int | None = None


Proof = (
    AdaptiveProof
    | ThresholdProof
    | SelectionProof
    | CountsProof
    | PicksProof
    | VotesProof
    | PathsProof
    | NightsProof
    | KeysProof
)
PROOFS: dict[str, type[Any]] = {
    "adaptive rounds": AdaptiveProof,
    "threshold": ThresholdProof,
    "optimal selection": SelectionProof,
    "counts": CountsProof,
    "picks": PicksProof,
    "votes": VotesProof,
    "paths": PathsProof,
    "nights": NightsProof,
    "keys": KeysProof,
}


@final
@dataclass(frozen=True, slots=True)
class Certificate(Stated):
    """Everything on which one guarantee rests.

    Attributes:
        claim: the promise.
        proof: the numbers from which it follows; their class names the proof.
    """

    claim: Claim
    proof: Proof

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate, ready for JSON."""
        kind = next(name for name, each in PROOFS.items() if type(self.proof) is each)
        body = {"claim": self.claim.to_dict(), "proof": kind, "numbers": self.proof.to_dict()}
        return {"format": FORMAT, "version": VERSION, **body}

    @classmethod
    def from_dict(cls, values: Any) -> "Certificate":
        """Return the certificate that `to_dict` wrote.

        Raises:
            InternalError: It has other fields, or is of another version.
        """
        known = isinstance(values, dict) and values.keys() == {"format", "version", "claim", "proof", "numbers"}
        if not known or (values["format"], values["version"]) != (FORMAT, VERSION) or values["proof"] not in PROOFS:
            raise malformed()
        return cls(Claim.from_dict(values["claim"]), PROOFS[values["proof"]].from_dict(values["numbers"]))

    def to_json(self) -> str:
        """Return the text: equal for equal certificates."""
        return json.dumps(self.to_dict(), sort_keys=True, allow_nan=False)
