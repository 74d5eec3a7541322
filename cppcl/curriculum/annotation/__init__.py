"""People's answers to which of two samples is easier: asked for, read, counted, compared."""
