"""Counts of the users of each released gram, and rankings of the grams with the most users."""
