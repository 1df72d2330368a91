"""Releases, counts and rankings, with saving, loading, completion and reports. This package reads no private data."""
