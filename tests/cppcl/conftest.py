"""Hypothesis without a deadline: how busy the machine is says nothing about the code."""

from hypothesis import settings

settings.register_profile("any time", deadline=None)
settings.load_profile("any time")
