"""Drawings in SVG: styles resolved, what is not drawn refused, rendered within limits."""
