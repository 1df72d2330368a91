"""Commands for maintainers, such as licences, audit of dependencies, reproducible wheels."""
