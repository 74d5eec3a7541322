"""Wiring of stages and the typed configuration of experiments. No numerics."""
