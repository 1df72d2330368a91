"""The engine of this machine, in memory or within a memory limit."""
