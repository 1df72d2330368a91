"""Kernels: functions from arrays to arrays, compiled by numba. The only module they import from voxpop is `arrays`."""
