"""The typed configuration of experiments, and how it is read."""
