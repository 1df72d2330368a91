"""Heavy hitters (TrieHH) find frequent words, although each word remains on the devices of its users.

The accountant is exact.
"""
