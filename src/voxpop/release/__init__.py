"""Results: releases, counts, rankings; saving, loading, completion and reports. Nothing here reads private data."""
