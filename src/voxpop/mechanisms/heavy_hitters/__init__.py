"""Heavy hitters (TrieHH), which finds frequent words while the words of each user remain on the user's device.

The accountant is exact.
"""
