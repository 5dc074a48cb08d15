"""For tests, yours too: a brute-force oracle, Hypothesis strategies, seeded feeds."""
