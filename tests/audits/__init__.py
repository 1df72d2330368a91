"""Audit cases of the mechanisms of Voxpop. Run the cases with `PYTHONPATH=tests python -m audits`."""
