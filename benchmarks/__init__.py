"""Tables and figures of the papers, comparisons, and measurements of speed, with one command for each result."""
