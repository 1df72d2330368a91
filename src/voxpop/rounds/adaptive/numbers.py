"""The numbers of adaptive rounds: what runs, before any data is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, Protocol, final

from voxpop.privacy.evidence import EvidenceRounds
from voxpop.rounds.plan import RoundPlan
from voxpop.weighting.rule import CalibratedRule


@final
@dataclass(frozen=True, slots=True)
class AdaptiveRound:
    """One round that adds to the evidence.

    Attributes:
        shares: the weighting with limit, grid and cutoff.
        sigma: standard deviation of the noise on a weight.
        cell: noisy weights are rounded to whole multiples of it, a power of two.
    """

    shares: CalibratedRule
    sigma: float
    cell: float

    @property
    def cutoff(self) -> float | None:
        """Weight at which items stop rising, or None where nothing stops them."""
        return self.shares.setting.cutoff_weight


class Rounds(Protocol):
    """Whatever holds the numbers of adaptive rounds: `AdaptiveRounds`, or a plan."""

    @property
    def limit(self) -> int:
        """Most items of one user in a round."""

    @property
    def pool(self) -> int:
        """Most items of one user in all rounds after the opening."""

    @property
    def opening(self) -> RoundPlan:
        """The first round, which only releases."""

    @property
    def rounds(self) -> tuple[AdaptiveRound, ...]:
        """The later rounds."""

    @property
    def evidence(self) -> EvidenceRounds:
        """How later rounds are added up, and when items are released or dropped."""

    def __hash__(self) -> int:
        """Numbers that are asked about again are not computed again."""


class LastRound:
    """What adaptive rounds come to in the last one, for plans that are asked as if they had a single threshold."""

    __slots__ = ()

    @property
    def scale(self: Rounds) -> float:
        """Standard deviation of the noise on an item's weight, in the last round."""
        return self.rounds[-1].sigma

    @property
    def threshold(self: Rounds) -> float:
        """Weight in every later round with which an item that is not dropped comes out with probability 1/2."""
        return usual_threshold(self)

    @property
    def cutoff(self: Rounds) -> float | None:
        """Weight at which items stop rising in the last round; None for weightings without a cutoff."""
        return self.rounds[-1].cutoff


@final
@dataclass(frozen=True, slots=True)
class AdaptiveRounds(LastRound):
    """Opening, later rounds and evidence, as `Rounds` says what each is."""

    limit: int
    pool: int
    opening: RoundPlan
    rounds: tuple[AdaptiveRound, ...]
    evidence: EvidenceRounds

    @property
    def square(self) -> float:
        """All of mu^2, the opening counted."""
        return fsum(mu * mu for mu in mus_of(self.opening, self.rounds))


def mus_of(opening: RoundPlan, later: Sequence[AdaptiveRound]) -> list[float]:
    """Return mu of every round, the opening first: the sensitivity of the setting that runs, over its sigma."""
    return [opening.shares.sensitivity / opening.scale, *(each.shares.sensitivity / each.sigma for each in later)]


def usual_threshold(rounds: Rounds) -> float:
    """Return the weight in every later round with which an item that is not dropped comes out with probability 1/2."""
    evidence = rounds.evidence
    # Weight w adds c_r w / sigma_r of evidence in round r.
    per_weight = sum(part / each.sigma for part, each in zip(evidence.parts, rounds.rounds, strict=True))
    # The weight at which the mean of the evidence lies at the last threshold.
    return float(evidence.thresholds[-1] * evidence.spreads[-1]) / per_weight


def round_rows(rounds: Rounds) -> list[dict[str, Any]]:
    """Return the numbers of each round, ready for JSON."""
    return [rounds.opening.to_dict(), *(_round_row(rounds, number) for number in range(len(rounds.rounds)))]


def _round_row(rounds: Rounds, number: int) -> dict[str, Any]:
    each, evidence = rounds.rounds[number], rounds.evidence
    return {
        "noise": "gaussian",
        "scale": each.sigma,
        "threshold": None,
        "cutoff": each.cutoff,
        "grid_bits": each.shares.setting.bits,
        "part": evidence.parts[number],
        "evidence_threshold": evidence.thresholds[number],
        "evidence_floor": evidence.floors[number] if number < len(evidence.floors) else None,
    }


def round_table(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Return the same as the cells of a table, a head above them."""
    opening, *later = rows
    first = ["1", f"{opening['scale']:.6g}", f"{opening['threshold'] / opening['scale']:.4g}", "-", "-"]
    cells = [["round", "sigma", "threshold", "floor", "part"], first]
    for number, each in enumerate(later, start=2):
        floor = "-" if each["evidence_floor"] is None else f"{each['evidence_floor']:.4g}"
        part = f"{each['part'] / later[-1]['part']:.4g}"
        cells.append([str(number), f"{each['scale']:.6g}", f"{each['evidence_threshold']:.4g}", floor, part])
    return cells
