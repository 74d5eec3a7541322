"""Features of pretrained networks."""
