"""Folders that appear whole or not at all.

| file | holds |
|---|---|
| `folder.py` | a folder replaced in one step |
| `exchange.py` | two folders exchanged by the system |
"""
