"""Query Indexing with Containment-Encoded Intervals for Efficient Stream Processing (Wu, Chen, Yu)"""
