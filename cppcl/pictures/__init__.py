"""Pictures: decoding, SVG, photographs of sketches."""
