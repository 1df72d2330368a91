"""Engines store the private data in memory, in files or on Spark, and give mechanisms access through one contract."""
