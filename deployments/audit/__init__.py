"""A page that asks people whether the pairs or labels of an audit are right."""
