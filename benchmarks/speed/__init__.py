"""Seconds and memory, beside what others do in the same run."""
