"""Rounds that weigh items and decide about them. Set union and n-grams consist of such rounds."""
