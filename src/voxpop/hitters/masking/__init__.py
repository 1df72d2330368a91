"""Sums that nobody sees but their total: secure aggregation of vectors of counts, needs `pip install voxpop[flower]`.

The protocol is that of Bonawitz et al., "Practical Secure Aggregation for Privacy-Preserving Machine Learning" (CCS
2017), with a complete graph of nodes. Agreement, encryption and masks come from `cryptography`, shares from Flower's
Shamir. Flower's own SecAgg+ serves its old workflows only, adds floats rounded at random, and makes its masks from 32
bits (`pseudo_rand_gen`), which a server can try out; so nothing of that is used.

| file | holds |
|---|---|
| `keys.py` | key pairs, what two nodes agree on, encryption, masks |
| `member.py` | a node through its four stages |
| `collector.py` | the server through its four stages: it relays, adds and unmasks, and fails closed |
"""
