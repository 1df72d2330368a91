"""Whole sequences, with noisy counts of the symbols after each context, a model of them, queries and synthetic data."""
