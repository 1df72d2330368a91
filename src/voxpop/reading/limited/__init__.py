"""Reading and sorting within a memory limit, with private files for data that does not fit."""
