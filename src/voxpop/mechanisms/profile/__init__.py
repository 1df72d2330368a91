"""The profile of a table: the values of all columns that many users share, with counts and cover."""
