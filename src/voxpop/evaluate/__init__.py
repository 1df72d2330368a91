"""Comparisons with private truth: what is computed here says "private" in its name and never enters a release."""

from voxpop.evaluate.k_anonymity import private_coverage, private_user_counts

__all__ = ["private_coverage", "private_user_counts"]
