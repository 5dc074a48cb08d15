"""Indexing the Results of Sliding Window Queries (Golab, Prahladka and Özsu)"""
