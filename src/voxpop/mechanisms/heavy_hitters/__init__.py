"""Heavy hitters: words that stay on the devices of their users (TrieHH), with an exact accountant."""
