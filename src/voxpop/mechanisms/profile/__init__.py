"""The profile of a table, which consists of the values that many users share in each column, with counts and cover."""
