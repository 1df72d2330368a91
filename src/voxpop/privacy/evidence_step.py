"""What one round adds to the evidence of items, and what becomes of them: ready to be sent to where the weights are."""

from dataclasses import dataclass, replace

from voxpop.arrays import Bools, Floats, Int64s, Uint64s
from voxpop.privacy.rounded_noise import noisy_cells
from voxpop.privacy.secret import Source

Outcome = tuple[Floats, Bools, Bools]


@dataclass(frozen=True, slots=True)
class EvidenceStep:
    """One round's noise, and the levels at which evidence decides.

    Attributes:
        sigma: standard deviation of the noise, in weight.
        unit: units of the grid in a weight of 1.
        cell: units in a cell; noisy weights are whole cells.
        part: factor of the noisy weight, in standard deviations of its noise, in the evidence.
        threshold: evidence at which an item is released.
        floor: evidence below which an item is dropped; minus infinity in the last round.
        secret: source of the bits.
        purpose: what they are for.
    """

    sigma: float
    unit: int
    cell: int
    part: float
    threshold: float
    floor: float
    secret: Source
    purpose: str

    def __call__(self, weights: Int64s, names: Uint64s, evidence: Floats) -> Outcome:
        """Return the new evidence, which items are released, and which are dropped.

        Args:
            weights: int64 (items), in units; 0 for undecided items that nobody drew this time.
            names: uint64 (items, 2), by which draws name an item, the same on every engine.
            evidence: float64 (items), before this round.
        """
        draws = self.secret.draws(self.purpose, names[:, 0], names[:, 1])
        # (items,), z_r sigma_r in whole cells: noise on everything undecided, also where the weight is 0
        # (docs/privacy/adaptive.md, "Shared items").
        cells = noisy_cells(weights, self.sigma, self.unit, self.cell, draws)
        # S_r = S_(r-1) + c_r z_r, with z_r in units of sigma_r.
        evidence = evidence + self.part * (cells * (self.cell / (self.unit * self.sigma)))
        return evidence, evidence >= self.threshold, evidence < self.floor

    def restricted(self) -> "EvidenceStep":
        """Return a step that can be sent away and knows no other purpose."""
        return replace(self, secret=self.secret.restrict(self.purpose))
