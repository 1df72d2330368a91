"""Seconds and memory, compared with other software in the same run."""
