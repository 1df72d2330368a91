"""Kernels: arrays in, arrays out, compiled by numba; of voxpop they import `arrays` alone.

| file | holds |
|---|---|
| `_jit.py` | the only import of numba |
| `bound.py` | kernels that bound what one user contributes |
| `chains.py` | kernels for chains of fixed memory |
| `group.py` | kernels that lay documents out user by user and give ids their final names |
| `pairs.py` | kernels that number the grams of one length from those of the length before |
| `patterns.py` | kernels that look for given runs and patterns in sequences |
| `synthesis.py` | kernels that lengthen grams and turn their counts into whole sequences (CAC12, 4.3.5) |
| `tries.py` | kernels that lay out what users may vote for, and what words have in common |
| `weigh.py` | kernels that add bounded sets to an integer histogram, one user after the other |
| `backoff.py` | kernels over a tree of released grams |
| `sequences.py` | kernels that cut one sequence per user and count the grams of the nodes of a tree |
| `words.py` | kernels that cut UTF-8 text into words and give every distinct word an id |
| `contexts.py` | kernels that count what follows each context |
| `pools.py` | kernels for pools |
| `pouring.py` | kernels of the baselines |
| `quotes.py` | the kernel that follows the quotes of a CSV file |
| `sessions.py` | kernels over drawn sessions |
| `runs.py` | how many candidates in a row users hold |
| `shrinking.py` | kernels for noisy counts whose expected values are known roughly |
| `numbering.py` | a table that gives distinct keys their numbers, by first appearance |
| `uniform.py` | uniform numbers inside of kernels, by splitmix64 |
| `_overload_files.py` | machine code of kernels in files that never change |
| `cutpoints.py` | kernels for the cutpoints that bands of candidates take when each spurious gram has a price |
| `documents.py` | kernels that put each user's documents in the order of what they hold |
"""
