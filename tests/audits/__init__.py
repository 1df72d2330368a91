"""Audit cases of the mechanisms of Voxpop: `PYTHONPATH=tests python -m audits`."""
