"""Audit cases of the mechanisms of Voxpop. The command is `PYTHONPATH=tests python -m audits`."""
