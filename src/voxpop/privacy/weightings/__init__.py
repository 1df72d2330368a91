"""Weightings of the set union: how each user shares one unit of weight among the items that the user holds.

`Count`, `Weighted`, `PolicyGaussian` and `PolicyLaplace` are the weightings of DPSU (Gopi et al., ICML 2020). Derive a
class from `Weighting` for a weighting of your own. docs/privacy/set-union.md has the proofs.

"""

from voxpop.privacy.weightings.builtin import Count, PolicyGaussian, PolicyLaplace, Weighted
from voxpop.privacy.weightings.rule import Weighting

__all__ = ["Count", "PolicyGaussian", "PolicyLaplace", "Weighted", "Weighting"]
