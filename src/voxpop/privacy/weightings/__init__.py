"""Weightings of the set union, which divide one unit of weight per user among the items of the user.

`Count`, `Weighted`, `PolicyGaussian` and `PolicyLaplace` are the weightings of DPSU (Gopi et al., ICML 2020). Derive a
class from `Weighting` to define a custom weighting. docs/privacy/set-union.md contains the proofs.

"""

from voxpop.privacy.weightings.builtin import Count, PolicyGaussian, PolicyLaplace, Weighted
from voxpop.privacy.weightings.rule import Weighting

__all__ = ["Count", "PolicyGaussian", "PolicyLaplace", "Weighted", "Weighting"]
