"""Hand-made descriptors."""
