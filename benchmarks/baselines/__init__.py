"""Algorithms by other authors, for comparisons only. They read private data, and their noise is drawn in doubles.

| file | contents |
|---|---|
| `all_grams.py` | set union over grams of all lengths, without pruning (DPNE's three baselines) |
| `gram_draws.py` | sequences drawn from the published gram model (CAC12) |
| `chains.py`, `prefix_trees.py` | sequences by Markov chains of fixed memory, and by prefixes |
| `greedy.py` | GW (Carvalho, Wang, Gondara, 2022), with its published and a public order |
| `adaptive.py` | MAD and MAD2R (Chen et al., 2025), reconstructed |
| `gaussian.py` | the basic weighted Gaussian, DP-SIPS (2023), PipelineDP's weighted Gaussian |
| `renyi.py` | selection by Rényi divergence at one order (2026), reconstructed |
| `priv_tree.py` | sequences by PrivTree's splits of contexts (Zhang, Xiao, Xie, 2016), from memory |
| `hitting.py` | k-hitting sets (Dick, Joseph, Raman, 2026), from summaries |
| `held.py` | pairs of user and item, and missing mass |
| `noise.py` | noise of the baselines, drawn in doubles |
"""

from benchmarks.baselines.adaptive import private_mad, private_mad2r
from benchmarks.baselines.gaussian import private_dp_sips, private_pipeline_dp
from benchmarks.baselines.greedy import by_own_frequency, by_public_rank, private_greedy
from benchmarks.baselines.held import PrivatePairs, private_missing_mass, private_released
from benchmarks.baselines.renyi import private_mad2r_renyi, private_policy_renyi, private_weighted_renyi

__all__ = [
    "PrivatePairs",
    "by_own_frequency",
    "by_public_rank",
    "private_dp_sips",
    "private_greedy",
    "private_mad",
    "private_mad2r",
    "private_mad2r_renyi",
    "private_missing_mass",
    "private_pipeline_dp",
    "private_policy_renyi",
    "private_released",
    "private_weighted_renyi",
]
