"""Releases on every night under one budget: the plan, the private state, and the nights."""
