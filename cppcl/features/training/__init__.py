"""How networks learn from the sketches and pictures of a split: batches, losses, the one loop."""
