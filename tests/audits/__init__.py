"""Audit cases of our own mechanisms: `PYTHONPATH=tests python -m audits`."""
