"""Data, result files, and processes shared by the benchmarks."""
