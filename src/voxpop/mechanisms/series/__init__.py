"""Releases on every night under one budget, with the plan, the private state and the nights."""
