"""Set union as others do it, for comparison: these read private truth, draw noise in doubles, and never make a release.

| module | algorithm |
|---|---|
| `greedy` | GW (Carvalho, Wang, Gondara, 2022), with its published and a public order |
| `adaptive` | MAD and MAD2R (Chen and others, 2025), reconstructed |
| `gaussian` | the basic weighted Gaussian, DP-SIPS (2023), PipelineDP's weighted Gaussian |
| `held` | who holds what, and missing mass |
"""

from voxpop.evaluate.baselines.adaptive import private_mad, private_mad2r
from voxpop.evaluate.baselines.gaussian import private_dp_sips, private_pipeline_dp
from voxpop.evaluate.baselines.greedy import by_own_frequency, by_public_rank, private_greedy
from voxpop.evaluate.baselines.held import PrivatePairs, private_missing_mass, private_released

__all__ = [
    "PrivatePairs",
    "by_own_frequency",
    "by_public_rank",
    "private_dp_sips",
    "private_greedy",
    "private_mad",
    "private_mad2r",
    "private_missing_mass",
    "private_pipeline_dp",
    "private_released",
]
