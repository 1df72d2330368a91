"""Counts and rankings of the grams of a release: the number of users of each, or the grams with the most users."""
