"""Commands for maintainers: licences, audit of dependencies, reproducible wheels."""
