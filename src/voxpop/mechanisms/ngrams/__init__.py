"""The mechanism of n-grams, which releases phrases of every length, guided by the grams that are already released."""
