"""Heavy hitters where the data stays on the device (TrieHH), with an exact accountant.

| file | holds |
|---|---|
| `heavy_hitters.py` | `HeavyHitters`, the public configuration |
| `prefix.py`, `trie.py` | what is public while it runs: prefixes, and the trie they form |
| `client.py` | the device of one user: sees its own words and the trie, votes for one prefix |
| `server.py` | samples users, checks and counts votes, grows the trie; never sees a word |
| `protocol.py` | clients and server put together, one user at a time: slow, and what everything else must equal |
| `alphabet.py`, `electorate.py`, `simulation.py` | the same for all users of a corpus at once, in arrays |
| `planning.py`, `plan.py`, `units.py`, `describe.py` | from a budget to the numbers that run, and what it could buy |
| `releasing.py`, `trust.py` | from private votes to a public set, and what a server saw meanwhile |
| `domain.py`, `limits.py` | what can be voted for in a round, as places of vectors, and how many there may be |
| `masking/` | sums of which the server sees the total only |
| `flower/` | the same over Flower, with words that never leave their nodes |
| `federation.py` | the server's side of a round over any transport |
| `node.py` | a node |
| `rules.py` | the public numbers that client and server both follow |
| `wire.py` | the trie and sums of votes as text |
"""

from voxpop.hitters.heavy_hitters import HeavyHitters
from voxpop.hitters.plan import HittersPlan

__all__ = ["HeavyHitters", "HittersPlan"]
