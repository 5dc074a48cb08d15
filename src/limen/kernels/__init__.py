"""Compiled algorithms on arrays: numpy and numba only, one algorithm a file, nothing of limen above.

Every range here is a pair of int64 ordinals ``[lo, hi]``, both ends included.
"""
