"""Accounting for tries that grow by sampled votes and a threshold (TrieHH), without data."""
