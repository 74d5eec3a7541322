"""Choice of options by cross-validation."""
