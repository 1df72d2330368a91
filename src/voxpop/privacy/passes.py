"""The schema of certificates, which contain the numbers of a guarantee as plain data (docs/privacy/certificate.md).

Whole numbers are exact. Every other number is a double and means exactly its value, and is written so that it reads
back as the same double. Fractions are texts such as "3/4".
"""

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, final

from voxpop.privacy.parameters import KeyNoise, KeyParts, KnownLevels, KnownList, NightLevels
from voxpop.privacy.stated import Stated, malformed

FORMAT, VERSION = "voxpop certificate", 1
_NEIGHBOURS = "one user added or removed"


@final
@dataclass(frozen=True, slots=True)
class Claim(Stated):
    """The promise to every user.

    Attributes:
        epsilon: Epsilon of the guarantee.
        delta: Delta of the guarantee.
        neighbours: The difference between the two collections.
    """

    epsilon: float
    delta: float
    neighbours: str = _NEIGHBOURS


@final
@dataclass(frozen=True, slots=True)
class Bounding(Stated):
    """The weighting that bounds each user, with all numbers that determine its sensitivity.

    Attributes:
        name: "policy-gaussian", "policy-laplace", "weighted" or "count"; in adaptive rounds "capped".
        norm: The norm in which a user has weight 1, which is 1 for Laplace noise and 2 for Gaussian noise.
        limit: The maximum number of items per user.
        bits: The binary digits of weights, which are whole multiples of 2^-bits (the units below).
        cutoff: The weight, in units, above which items get no more weight; 0 for weightings without a cutoff.
        bound: The largest change of the histogram by one user, 1, or 4 if users have individual sensitivities.
    """

    name: str
    norm: int
    limit: int
    bits: int
    cutoff: int
    bound: int = 1


@final
@dataclass(frozen=True, slots=True)
class Threshold(Stated):
    """A pass that releases the items whose weight plus noise reaches a threshold.

    Attributes:
        bounding: The bound on each user.
        noise: "gaussian" or "laplace".
        scale: Sigma of Gaussian noise or b of Laplace noise, in weight.
        threshold: The threshold, in units of the grid.
    """

    bounding: Bounding
    noise: Literal["gaussian", "laplace"]
    scale: float
    threshold: int


@final
@dataclass(frozen=True, slots=True)
class Round(Stated):
    """One adaptive round, which adds noise to every undecided item of every pool and decides by the cumulative score.

    Attributes:
        bounding: The bound on each user; the caps are those of all rounds.
        sigma: Standard deviation of the noise, in weight.
        cell: The size of a cell in units; noisy weights are whole multiples of it.
        mu: The charged shift by a weight of 1, in standard deviations, which is at least sensitivity / sigma.
        part: The factor of the noisy weight, in standard deviations, in the score.
        threshold: The threshold of the score, in standard deviations of its noise.
        drop: The drop threshold, in the same unit; None in the last round.
        enough: The score at which an item can use no more weight in the next round. The guarantee does not depend on
            it.
        steps: The number of steps of the next cutoff per score of 1. The guarantee does not depend on it.
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
    """The largest weights that one user can give an item, by the number of unreleased items in the user's pool.

    Attributes:
        items: The largest number of items of each level, in increasing order; the last one is the size of the pool.
        weights: The largest weight of an item by level and round, in 2^-30.
        chances: The largest probability that one item is drawn, by level.
    """

    items: tuple[int, ...]
    weights: tuple[tuple[int, ...], ...]
    chances: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True)
class Rounds(Stated):
    """All adaptive rounds of one data set, in the order in which they run.

    Attributes:
        pool: The maximum number of items per user in all rounds after the first; items of a public list do not count.
        first: The first round; None if the candidates are public.
        later: The rounds that add up the score.
        caps: The caps of the later rounds.
        margin: The largest difference between the compared score and the exact one, in standard deviations.
        known: The levels that decide items of a public list; None without a list.
    """

    pool: int
    first: Threshold | None
    later: tuple[Round, ...]
    caps: CapLevels
    margin: float
    known: KnownLevels | None = None

    @property
    def listed(self) -> KnownList | None:
        """The public list, or None if there is no list."""
        return None if self.known is None else self.known.listed


@final
@dataclass(frozen=True, slots=True)
class Choice(Stated):
    """A private choice of the rounds, and the caps that any chosen rounds satisfy.

    Attributes:
        edges: The smallest number of distinct items of each class of users after the first.
        sigma: Standard deviation of the noise on the number of users in a class, rounded to whole users.
        square: The largest mu^2 of the rounds.
        novel: The largest probability that the rounds release a novel item.
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
        columns: The number of columns, which is the square of the sensitivity.
        sigma: Standard deviation of the noise, in shares.
    """

    columns: int
    sigma: float


@final
@dataclass(frozen=True, slots=True)
class Later(Stated):
    """Gaussian releases about released items, chosen adaptively under a cap on mu^2.

    Attributes:
        square: The cap on the mu^2 of all these releases together, on every path.
        charged: The accounting: with "each user", the cap applies to each user separately; with "everybody", all users
            are charged for every pass; with "parts", the parts have the caps below.
        passes: The maximum number of votes, or the number of passes of the parts.
        joining: The mu^2 of rounds over public candidates.
        counting: The mu^2 of counts.
        cover: The sums of shares.
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
        passes: The number of decisions with 128 bits for one data set; see `walk_slack`.
        pool: The number of items per user from which rounds draw with 64 bits; 0 if nothing is drawn.
        rounds: The number of such draws.
    """

    passes: int
    pool: int = 0
    rounds: int = 0


@final
@dataclass(frozen=True, slots=True)
class AdaptiveProof(Stated):
    """The numbers of adaptive rounds (docs/privacy/adaptive.md and docs/privacy/limit.md).

    Attributes:
        data_sets: The names of the data sets, each with such rounds; empty for a single data set without a name.
        choice: The private choice of the rounds; None if they are fixed.
        rounds: The rounds. With a choice, they are the chosen rounds, and None before the release.
        later: The releases that follow.
        slack: The slack of one data set, without later releases.
        known: The public list of all rounds; None without a list.
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
    """The numbers of one pass over unknown items (docs/privacy/set-union.md).

    The proof for later releases is in docs/privacy/ngrams.md.

    Attributes:
        first: The pass.
        later: The releases that follow.
    """

    first: Threshold
    later: Later | None


@final
@dataclass(frozen=True, slots=True)
class SelectionProof(Stated):
    """The numbers of optimal selection for users with one item each (docs/privacy/optimal-selection.md).

    Attributes:
        delta: Delta of the rule.
        few: The largest number of users at which an item is never released.
    """

    delta: float
    few: int


@final
@dataclass(frozen=True, slots=True)
class Counted(Stated):
    """Counts of public grams.

    Attributes:
        limits: The maximum number of grams, by length, for which a user counts in full.
        sigma: Standard deviation of the noise on every count, in users.
    """

    limits: tuple[int, ...]
    sigma: float


@final
@dataclass(frozen=True, slots=True)
class CountsProof(Stated):
    """Counts of public grams, under limits that may be chosen privately (docs/privacy/counts.md).

    Attributes:
        menu: The possible counts, one of which runs.
        classes_sigma: Standard deviation of the noise on the number of users in a class; 0 if nothing is chosen.
        chosen: The position in the menu, after a release.
        known: The public list of items that are counted, too; None without a list.
    """

    menu: tuple[Counted, ...]
    classes_sigma: float
    chosen: int | None = None
    known: KnownList | None = None


@final
@dataclass(frozen=True, slots=True)
class PicksProof(Stated):
    """A ranking by the largest counts with Gumbel noise (docs/privacy/top.md).

    Attributes:
        picks: The number of places in the ranking.
        candidates: The number of public grams.
        rate: The rate of the noise, per user.
    """

    picks: int
    candidates: int
    rate: float


@final
@dataclass(frozen=True, slots=True)
class VotesProof(Stated):
    """Sampled votes and a threshold, without noise (docs/privacy/heavy-hitters.md).

    Attributes:
        rate: The probability that a user votes in a round.
        again: The probability of a second vote.
        further: The probability of each vote after the second.
        theta: The number of votes that a prefix needs, which is also the maximum number of votes per user.
        rounds: The maximum number of rounds.
        words: "one" if a user votes for one word in all rounds, or "many".
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
    """Integer Laplace noise along the paths of a tree (docs/privacy/sequences.md).

    Attributes:
        tree: "contexts" for a tree that follows two statistics of users, or "grams".
        epsilon: Epsilon of the counts; the shares on every path add up to at most all of it.
        alphabet: The number of symbols; None before the release finds them.
        max_length: The maximum number of steps per user; released lengths can lower it.
        max_gram: The maximum number of levels.
        finding: The certificate of the release that finds the alphabet; None if the alphabet is given.
        least: The `least` of the `StepsRule` of contexts; None for grams.
        per_noise: The `per_noise` of the `StepsRule` of contexts; None for grams.
        usual: The `usual` of the `StepsRule` of contexts; None for grams, or if the length was given.
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
    """The numbers of a series of nights (docs/privacy/series.md).

    Attributes:
        square: The mu^2 that each user may spend in all nights.
        pool: The maximum number of items per user in all nights.
        bits: The binary digits of weights, which are whole multiples of 2^-bits (the units below).
        cell: The number of units in a cell of noisy weights.
        costs: The charge of each night, in 2^-40 of the whole budget.
        sigmas: Standard deviation of the noise of each night, in weight.
        cutoffs: The weight, in units, above which items get no more weight, by night.
        factors: The factor of a noisy weight, in cells, in the score of each night.
        thresholds: The score at which an item is released, by night; an item of a public list has levels instead.
        known: The levels that decide items of a public list; None without a list.
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
    known: NightLevels | None = None


@final
@dataclass(frozen=True, slots=True)
class KeysProof(Stated):
    """The numbers of a release of keys with counts (docs/privacy/keys.md).

    Attributes:
        edges: The smallest number of distinct keys of each class of users after the first; empty if nothing is chosen.
        choosing: The rate of the noise on the number of users in a class; 0 if nothing is chosen.
        rest: The rate of the noise on all shares of rows together; 0 if they are not measured.
        sets: The number of sets of keys.
        menu: The entries with one noisy number per key.
        rounds: The last entry, of adaptive rounds, with the counts that follow; None without such an entry.
        parts: The entry of users in parts, after the menu; None without such an entry.
        chosen: The position of the entry that ran, after a release.
    """

    edges: tuple[int, ...]
    choosing: Fraction
    rest: Fraction
    sets: int
    menu: tuple[KeyNoise, ...]
    rounds: AdaptiveProof | None
    parts: KeyParts | None = None
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
        claim: The promise.
        proof: The numbers that imply the promise; their class identifies the proof.
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
            InternalError: The fields or the version are different.
        """
        known = isinstance(values, dict) and values.keys() == {"format", "version", "claim", "proof", "numbers"}
        if not known or (values["format"], values["version"]) != (FORMAT, VERSION) or values["proof"] not in PROOFS:
            raise malformed()
        return cls(Claim.from_dict(values["claim"]), PROOFS[values["proof"]].from_dict(values["numbers"]))

    def to_json(self) -> str:
        """Return the text, which is the same for equal certificates."""
        return json.dumps(self.to_dict(), sort_keys=True, allow_nan=False)
