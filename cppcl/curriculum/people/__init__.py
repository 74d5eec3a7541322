"""People's answers to which of two samples is easier."""
