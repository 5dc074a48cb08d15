"""Clusters in the ranges of queries: stabbing partitions, hotspots, interval histograms."""
