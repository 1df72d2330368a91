"""Weightings, which divide each user's unit of weight among the user's items (docs/privacy/set-union.md)."""
