"""What benchmarks share: data, tables, results kept cell by cell."""
