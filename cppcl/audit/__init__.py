"""Pairs and labels that most likely are wrong, and what people say about them."""
