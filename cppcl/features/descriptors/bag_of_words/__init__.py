"""Histograms of visual words: local descriptors, counted by the word nearest to each."""
