"""TrieHH over Flower: a ServerApp and a ClientApp, needs `pip install voxpop[flower]`.

| file | holds |
|---|---|
| `settings.py` | what a run is configured with: mechanism, budget, nodes, patience |
| `client_app.py`, `memory.py` | the node: reads its table, answers each round once, keeps secrets between stages |
| `server_app.py` | the server: asks, counts, grows, saves the release |

Words never leave a node; sums of votes do, masked so that the server sees their total only
(`voxpop.hitters.masking`). `examples/flower/` shows how to run it.
"""
