"""Whole sequences: noisy counts of the symbols after each context, a model of them, queries and synthetic data."""
