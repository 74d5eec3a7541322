"""Sketch-based image retrieval by cross-paced learning of coupled dictionaries (CPRL)."""
