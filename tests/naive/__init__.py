"""Reference implementations of all mechanisms with loops and dicts, as in the papers.

Tests compare the results of the library with those of the reference implementations.
"""
