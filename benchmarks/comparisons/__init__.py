"""Comparisons of the released results at equal privacy, by mechanism, option and collection."""
