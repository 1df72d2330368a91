"""Rounds of weighing and deciding, which set union and n-grams consist of."""
