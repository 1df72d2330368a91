"""N-grams: phrases of every length, guided by the grams that are already released."""
