"""Budgets, noise scales, thresholds, accounting and the secret. Nothing here depends on data."""
