"""A Flower app of two lines: the server and the node are in voxpop_flower."""
