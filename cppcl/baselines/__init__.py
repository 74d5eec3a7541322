"""Methods to compare with, all with the interface of `cppcl.methods.Method`.

A new one is one file with one class, and one line in `BASELINES`: the shared contract tests then
hold for it.
"""

from cppcl.baselines.base import Baseline
from cppcl.baselines.bilinear import Bilinear
from cppcl.baselines.canonical import ClassCCA, RidgeCCA
from cppcl.baselines.cdl import CDL
from cppcl.baselines.dictionaries import JDL
from cppcl.baselines.direct import CentredCosine, RawCosine
from cppcl.baselines.eigensketch import Eigensketch
from cppcl.baselines.infonce import InfoNCEHeads
from cppcl.baselines.logistic import LogisticRegression
from cppcl.baselines.pls import PLS
from cppcl.baselines.scdl import SCDL

BASELINES: dict[str, type[Baseline]] = {
    "raw_cosine": RawCosine,
    "centred_cosine": CentredCosine,
    "ridge_cca": RidgeCCA,
    "class_cca": ClassCCA,
    "logistic_regression": LogisticRegression,
    "infonce_heads": InfoNCEHeads,
    "eigensketch": Eigensketch,
    "pls": PLS,
    "bilinear": Bilinear,
    "jdl": JDL,
    "scdl": SCDL,
    "cdl": CDL,
}
