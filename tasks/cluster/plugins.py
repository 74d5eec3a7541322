"""Plugins on the workers of a cluster that runs elsewhere, and so does not inherit their names."""

from __future__ import annotations

import os
from typing import Any

from distributed import WorkerPlugin

from cppcl.plugin_modules import VARIABLE, load_plugins


class LoadPlugins(WorkerPlugin):
    """Loads plugins on each worker, also on those that come later.

    Parameters
    ----------
    names : tuple of str
        As `cppcl.plugin_modules.named_plugins` has them where the run is.
    """

    name = "cppcl-plugins"

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def setup(self, worker: Any) -> None:
        """Load them."""
        os.environ[VARIABLE] = os.pathsep.join(self.names)
        load_plugins()
