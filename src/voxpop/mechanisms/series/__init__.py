"""Releases every night under one budget: plan, private state and nights."""
