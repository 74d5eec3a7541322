"""Data sets that were published elsewhere: downloaded or added by hand, recognised, checked."""
