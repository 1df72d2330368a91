"""Kernels are functions from arrays to arrays that numba compiles.

Kernels import only modules of this package and `voxpop.errors`.
"""
