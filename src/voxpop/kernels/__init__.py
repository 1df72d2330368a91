"""Kernels: functions from arrays to arrays, compiled by numba. From voxpop they import only `arrays`."""
