"""Budgets, noise scales, thresholds, accounting and the secret. This package does not depend on data."""
