"""Weightings, which divide one unit of weight per user among the items of the user (docs/privacy/set-union.md)."""
