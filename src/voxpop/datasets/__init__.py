"""Data to try things on: real texts that every machine has, and generators of any size."""
