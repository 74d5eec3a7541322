"""Binary codes that are learned from labels: the objective, hash functions, and the method."""
