"""Rounds of weighing and deciding, which are the parts of set union and n-grams."""
