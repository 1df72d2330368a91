"""The schema of certificates, which contain the numbers of a guarantee as plain data (docs/privacy/certificate.md).

Whole numbers are exact. Every other number is a double. A double represents exactly its own value, and reading the
written number returns the same double. Fractions are strings such as "3/4".
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
    """The guarantee that a certificate claims for every user.

    Attributes:
        epsilon: The epsilon of the guarantee.
        delta: The delta of the guarantee.
        neighbours: The difference between two neighbouring collections.
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
        norm: The norm that bounds a user's weights; 1 for Laplace noise and 2 for Gaussian noise.
        limit: The maximum number of items per user.
        bits: The number of binary digits of weights after the point. Weights are whole multiples of 2^-bits (the grid
            units below).
        cutoff: The weight, in grid units, above which items get no more weight; 0 for weightings without a cutoff.
        bound: The largest effect of one user on the weights; 1, or 4 if users have individual sensitivities.
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
        bounding: The weighting that bounds each user.
        noise: "gaussian" or "laplace".
        scale: The sigma of Gaussian noise or the b of Laplace noise, in units of weight.
        threshold: The threshold, in grid units.
    """

    bounding: Bounding
    noise: Literal["gaussian", "laplace"]
    scale: float
    threshold: int


@final
@dataclass(frozen=True, slots=True)
class Round(Stated):
    """One adaptive round, which adds noise to every undecided item of every pool and decides by cumulative scores.

    Attributes:
        bounding: The weighting that bounds each user. All rounds have the same caps.
        sigma: The standard deviation of the noise, in units of weight.
        cell: The size of a cell, in grid units. Noisy weights are whole multiples of this size.
        mu: The shift of the noisy weight, in standard deviations, that is charged for a weight of 1. It is at least
            sensitivity / sigma.
        part: The factor by which the noisy weight, in standard deviations, enters the score.
        threshold: The threshold of the score, in standard deviations of its noise.
        drop: The drop threshold, in the same unit; None in the last round.
        enough: The score above which an item can use no more weight in the next round. The guarantee does not depend on
            it.
        steps: The number of steps of the next cutoff that correspond to a score of 1. The guarantee does not depend on
            it.
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
        items: The largest number of items at each level, in increasing order. The last number is the size of the pool.
        weights: The largest weight of an item by level and round, in multiples of 2^-30.
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
        pool: The maximum number of items per user in all rounds after the first. Items of a public list do not count.
        first: The first round, or None if the candidates are public.
        later: The rounds that add up the score.
        caps: The caps of the later rounds.
        margin: The largest difference between the score that is compared and the exact score, in standard deviations.
        known: The levels that decide about items of a public list, if there is one.
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
        edges: The smallest number of distinct items in each class of users except the first class.
        sigma: The standard deviation of the noise on the number of users in a class. The noisy number is rounded to
            whole users.
        square: The cap on the mu^2 of the rounds.
        novel: The cap on the probability that the rounds release a novel item.
    """

    edges: tuple[int, ...]
    sigma: float
    square: float
    novel: float


@final
@dataclass(frozen=True, slots=True)
class Cover(Stated):
    """The noisy sums of users' shares of rows with a released value and of rows without one, two sums per column.

    Attributes:
        columns: The number of columns, which is the square of the sensitivity.
        sigma: The standard deviation of the noise, in shares.
    """

    columns: int
    sigma: float


@final
@dataclass(frozen=True, slots=True)
class Later(Stated):
    """Gaussian releases about released items, chosen adaptively under a cap on mu^2.

    Attributes:
        square: The cap on the mu^2 of all these releases together, on every path.
        charged: The accounting. With "each user", the cap applies to each user separately. With "everybody", all users
            are charged for every pass. With "parts", each part has its own cap, as listed below.
        passes: The maximum number of votes, or the number of passes of all parts.
        joining: The mu^2 of rounds over public candidates.
        counting: The mu^2 of counts.
        cover: The noisy sums of shares, if they are released.
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
        passes: The number of passes of one data set that decide with 128 bits; see `walk_slack`.
        pool: The number of items per user from which rounds draw with 64 bits, or 0 if rounds draw no items.
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
        data_sets: The names of the data sets, each of which has such rounds; empty for a single data set without a
            name.
        choice: The private choice of the rounds, or None if the rounds are fixed.
        rounds: The rounds. If there is a choice, these are the chosen rounds; None before the release.
        later: The later releases, if there are any.
        slack: The slack of one data set, without later releases.
        known: The public list of all rounds, if there is one.
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
        later: The later releases, if there are any.
    """

    first: Threshold
    later: Later | None


@final
@dataclass(frozen=True, slots=True)
class SelectionProof(Stated):
    """The numbers of optimal selection for users with one item each (docs/privacy/optimal-selection.md).

    Attributes:
        delta: The delta of the rule.
        few: The number of users up to which an item is never released.
    """

    delta: float
    few: int


@final
@dataclass(frozen=True, slots=True)
class Counted(Stated):
    """The counts of public grams.

    Attributes:
        limits: The maximum number of grams, by length, for which a user counts in full.
        sigma: The standard deviation of the noise on every count, in users.
    """

    limits: tuple[int, ...]
    sigma: float


@final
@dataclass(frozen=True, slots=True)
class CountsProof(Stated):
    """Counts of public grams, with limits that may be chosen privately (docs/privacy/counts.md).

    Attributes:
        menu: The possible counts, one of which is released.
        classes_sigma: The standard deviation of the noise on the number of users in a class, or 0 if there is no
            choice.
        chosen: After a release, the index in the menu of the counts that were released.
        known: The public list of items that are also counted, if there is one.
    """

    menu: tuple[Counted, ...]
    classes_sigma: float
    chosen: int | None = None
    known: KnownList | None = None


@final
@dataclass(frozen=True, slots=True)
class PicksProof(Stated):
    """A ranking of the largest counts with Gumbel noise (docs/privacy/top.md).

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
        words: "one" if a user votes for the same word in all rounds, otherwise "many".
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
        tree: "contexts" for a tree of contexts, which follows two statistics of users, or "grams" for a tree of grams.
        epsilon: The epsilon of the counts. The shares on every path add up to at most this epsilon.
        alphabet: The number of symbols; None before the release discovers them.
        max_length: The maximum number of steps per user, which released lengths can reduce.
        max_gram: The maximum number of levels of the tree.
        finding: The certificate of the release that discovers the alphabet, or None if the alphabet is given.
        least: The value of `StepsRule.least` for contexts; None for grams.
        per_noise: The value of `StepsRule.per_noise` for contexts; None for grams.
        usual: The value of `StepsRule.usual` for contexts; None for grams or if the length was set.
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
        square: The mu^2 that each user may spend in all nights together.
        pool: The maximum number of items per user in all nights.
        bits: The number of binary digits of weights after the point. Weights are whole multiples of 2^-bits (the grid
            units below).
        cell: The number of grid units in a cell of noisy weights.
        costs: The charge of each night, in multiples of 2^-40 of the whole budget.
        sigmas: The standard deviation of the noise of each night, in units of weight.
        cutoffs: The weight, in grid units, above which items get no more weight, by night.
        factors: The factor by which a noisy weight, in cells, enters the score, by night.
        thresholds: The score at which an item is released, by night. An item of a public list has levels instead.
        known: The levels that decide about items of a public list, if there is one.
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
        edges: The smallest number of distinct keys in each class of users except the first class; empty if there is no
            choice.
        choosing: The rate of the noise on the number of users in a class, or 0 if there is no choice.
        rest: The rate of the noise on all shares of rows together, or 0 if they are not measured.
        sets: The number of sets of keys.
        menu: The entries with one noisy number per key.
        rounds: The last entry, which consists of adaptive rounds and the counts that follow, or None if there is no
            such entry.
        parts: The entry for users in parts, which follows the menu, or None if there is no such entry.
        chosen: After a release, the index of the entry that was used.
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
    """All numbers on which one guarantee is based.

    Attributes:
        claim: The guarantee that is claimed.
        proof: The numbers that imply this guarantee. The class of this object identifies the proof.
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
        """Return the certificate from the dictionary that `to_dict` returned.

        Raises:
            InternalError: The fields or the version differ from the schema.
        """
        known = isinstance(values, dict) and values.keys() == {"format", "version", "claim", "proof", "numbers"}
        if not known or (values["format"], values["version"]) != (FORMAT, VERSION) or values["proof"] not in PROOFS:
            raise malformed()
        return cls(Claim.from_dict(values["claim"]), PROOFS[values["proof"]].from_dict(values["numbers"]))

    def to_json(self) -> str:
        """Return the text of the certificate. Equal certificates have equal texts."""
        return json.dumps(self.to_dict(), sort_keys=True, allow_nan=False)
