"""Every table and figure, and speed against peers: one command each."""
