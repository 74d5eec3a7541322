"""Contours and strokes of a picture."""
