"""Networks that are trained here, on labelled sketches and pictures of a split."""
