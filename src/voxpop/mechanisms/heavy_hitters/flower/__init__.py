"""TrieHH over Flower: a ServerApp and a ClientApp, needs `pip install voxpop[flower]`."""
