"""How published data sets get here: downloaded or added by hand, recognised, checked."""
