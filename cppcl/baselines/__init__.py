"""Methods to compare with, all with the interface of `cppcl.methods.Method`.

A new one is one file with one class, and one line in `BASELINES`: the shared contract tests then
hold for it.
"""

from cppcl.baselines.base import LinearBaseline
from cppcl.baselines.centred_cosine import CentredCosine
from cppcl.baselines.class_cca import ClassCCA
from cppcl.baselines.raw_cosine import RawCosine
from cppcl.baselines.ridge_cca import RidgeCCA

BASELINES: dict[str, type[LinearBaseline]] = {
    "raw_cosine": RawCosine,
    "centred_cosine": CentredCosine,
    "ridge_cca": RidgeCCA,
    "class_cca": ClassCCA,
}
