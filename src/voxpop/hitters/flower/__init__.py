"""TrieHH over Flower: a ServerApp and a ClientApp, needs `pip install voxpop[flower]`.

| file | holds |
|---|---|
| `settings.py` | what a run is configured with: mechanism, budget, nodes, patience |
| `client_app.py` | the node: reads its own table, votes once a round |
| `server_app.py` | the server: asks, counts, grows, saves the release |

Words never leave a node; sums of votes do. `examples/flower/` shows how to run it.
"""
