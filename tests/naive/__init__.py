"""Reference implementations of all mechanisms with loops and dicts, as in the papers.

Tests compare results with them.
"""
