"""Rounds that weigh items and decide which items are released. Set union and n-grams use such rounds."""
