"""Dask clusters: which kinds there are, the one in use, and how blocks are shared out."""
