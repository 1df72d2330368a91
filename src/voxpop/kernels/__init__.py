"""Kernels are functions from arrays to arrays that numba compiles. They import no module of voxpop except `arrays`."""
