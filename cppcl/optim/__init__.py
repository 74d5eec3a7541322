"""Solvers of the three blocks of the objective: codes, dictionaries and pacing variables.

Samples, codes and atoms are rows here: with the paper's matrices, ``codes`` is the transpose of
C (n, N), ``dictionary`` the transpose of D (N, m) and ``features`` the transpose of F (n, m).
Sketches come first where both modalities are stacked.
"""
