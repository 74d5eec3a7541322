"""What reports show, gathered from the store."""
