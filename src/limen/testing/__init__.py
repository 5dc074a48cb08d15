"""For tests, yours too: a brute-force oracle, Hypothesis strategies, a seeded market feed."""
