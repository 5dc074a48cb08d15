"""For tests, yours too: a brute-force oracle and Hypothesis strategies for query sets and events."""
