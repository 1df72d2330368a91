"""Comparisons of the Spark engine with the local engine."""
