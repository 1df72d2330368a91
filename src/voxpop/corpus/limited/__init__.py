"""Work within a limit on memory: what does not fit goes to files that nobody else sees.

| file | holds |
|---|---|
| `memory.py` | a limit on memory |
| `work_file.py` | a file without a name |
| `pages.py` | memory given back |
| `sorter.py`, `user_files.py` | records sorted on disk, users laid out by key |
| `word_runs.py` | vocabularies merged on disk |
| `ordering.py`, `mapped_positions.py` | users in the order in which they weigh; positions of a mapped file |
"""
