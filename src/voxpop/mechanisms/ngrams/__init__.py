"""The mechanism of n-grams, which releases phrases length by length, based on the grams that are already released."""
