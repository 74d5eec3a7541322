"""Options of CPRL by their own names."""

from cppcl.learning.cprl import CPRL
from cppcl.learning.estimator import flattened, merged


def nested(**options):
    """Put options into their groups: ``nested(eta=2)`` is ``{"pacing": {"eta": 2}}``."""
    paths = {path.rpartition(".")[2]: path for path in flattened(CPRL().options())}
    return merged({}, {paths.get(name, name): value for name, value in options.items()})
