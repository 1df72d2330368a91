"""Accounting for tries grown by sampled votes and a threshold (TrieHH). No data is used here."""
