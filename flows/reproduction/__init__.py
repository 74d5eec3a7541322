"""Reproductions of the paper's tables and figures."""
