"""Tables and figures of the papers, comparisons, and speed against other libraries: one command for each result."""
