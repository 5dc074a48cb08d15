"""Efficient Interval Indexing for Content-Based Subscription E-Commerce and Services (Wu and others)"""
