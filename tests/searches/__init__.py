"""Searches for neighbouring collections that violate a claim: `PYTHONPATH=tests python -m searches`."""
