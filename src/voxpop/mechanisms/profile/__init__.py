"""The profile of a table, which consists of values of all columns that many users share, with counts and cover."""
