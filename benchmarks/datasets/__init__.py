"""Generators of data of any size, with user-item pairs (`pairs.py`) and texts with shared phrases (`phrases.py`)."""
