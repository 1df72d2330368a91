"""Reference implementations of each mechanism in loops over dicts, as in its paper, only for comparison."""
