"""A page on which people say which of two pictures is easier."""
