"""Commands for maintainers, for example for licences, audits of dependencies and reproducible wheels."""
