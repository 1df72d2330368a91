"""Naive twins: each mechanism again in loops over dicts, as its paper has it, for comparison and nothing else."""
