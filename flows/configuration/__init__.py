"""The typed configuration of experiments, and how it is read."""

from cppcl.plugin_modules import close_registries, load_plugins

# Before the models of options are made of what is registered.
load_plugins()
close_registries("the configuration of experiments")
