"""Whole sequences: noisy counts of the symbols after each context, a model, queries and synthetic data."""
