"""Heavy hitters (TrieHH) find frequent words that remain on the devices of their users, with an exact accountant."""
