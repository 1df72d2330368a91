"""Data to try things on: real texts that every machine has, and generators of any size.

| file | holds |
|---|---|
| `pairs.py` | user-item pairs shaped like the AskReddit words of the DPSU paper (Table 1) |
| `phrases.py` | texts of any size with stock phrases that many users share |
| `stdlib.py` | real text that every machine has |
"""
