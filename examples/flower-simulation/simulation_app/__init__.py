"""A Flower app whose nodes are simulated, with tables made in code."""
