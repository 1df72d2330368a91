"""The command line: `voxpop items`, `ngrams`, `hitters`, `sequences`, `plan`, `show` and `demo`.

| file | holds |
|---|---|
| `app.py` | the commands and what they are called |
| `audit.py` | `voxpop audit` |
| `columns.py` | which columns a call names, and how their text is cut |
| `complete.py` | `voxpop complete` |
| `count.py` | `voxpop count` |
| `demo.py` | `voxpop demo` |
| `engines.py` | where a command runs |
| `entry.py` | what happens around every command |
| `export.py` | `voxpop export` |
| `hitters.py` | `voxpop hitters` |
| `items.py` | `voxpop items` |
| `ledger.py` | `voxpop ledger` |
| `ngrams.py` | `voxpop ngrams` |
| `options.py` | the options that commands share, and what they are turned into |
| `plan.py` | `voxpop plan` |
| `releasing.py` | what every command that releases does, in the one order that spends nothing on a wrong call |
| `report.py` | a release as people and machines read it |
| `sequences.py` | `voxpop sequences` |
| `show.py` | `voxpop show` |
| `stages.py` | what the operator sees while a command runs; nothing of it enters a release |
| `bundles.py` | options that commands share |
| `ask.py` | `voxpop ask` |
| `top.py` | `voxpop top` |
| `together.py`, `data_sets.py` | `voxpop together` |
"""

from voxpop.cli.entry import console, main

__all__ = ["console", "main"]
