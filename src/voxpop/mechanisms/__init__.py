"""The mechanisms, each in its own package, and the rounds that they share."""
