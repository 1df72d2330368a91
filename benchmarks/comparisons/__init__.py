"""What is released at equal privacy, by mechanism, option and collection."""
