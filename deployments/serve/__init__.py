"""A page and a JSON interface that search a model's pictures by a drawing."""
