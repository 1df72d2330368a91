"""Engines store the private data and answer mechanisms through one contract: in memory, in files or on Spark."""
