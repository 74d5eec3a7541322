"""The pacing step: the quadratic program over the pacing variables, and its solvers."""
