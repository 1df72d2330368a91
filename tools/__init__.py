"""What maintainers run: licences, audit of dependencies, reproducible wheels."""
