"""Heavy hitters (TrieHH), a mechanism that finds frequent words while each user's words remain on the user's device.

The accountant is exact.
"""
