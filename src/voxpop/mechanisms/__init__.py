"""The mechanisms in one package each, and the weightings and rounds that they share."""
