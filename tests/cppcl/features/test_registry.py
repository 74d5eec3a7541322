import re
import subprocess
import sys

import pytest

from cppcl.errors import InputError
from cppcl.features import EXTRACTORS, make_extractor


def test_importing_the_registry_loads_nothing_heavy():
    code = (
        "import sys, cppcl.features; "
        "print({'torch', 'torchvision', 'skimage', 'scipy', 'PIL'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("pixel", {}, "'pixel'.*did you mean 'pixels'"),
        ("zzzz", {}, f"'zzzz'.*{', '.join(EXTRACTORS)}"),
        ("cnn", {"netwrk": "alexnet:classifier.1"}, "'cnn' has no option 'netwrk'.*'network'"),
        ("hog", {"size": 3}, "'hog' has no option 'size'.*contours, threshold"),
    ],
)
def test_unknown_names_and_options_are_told_the_known(name, options, words):
    with pytest.raises(InputError, match=words):
        make_extractor(name, options)


WRONG = {
    "pixels": {
        "size": (32, [32], [0, 4], [4.0, 4], [True, 4]),
        "crop": ((5, 0, 5, 3), (0, 3, 5, 3), (-1, 0, 5, 3)),
        "normalisation": ("zero_mean",),
        "color": ("grey",),
    },
    "cnn": {
        "network": (":fc", "alexnet:", None),
        "node": (6, ""),
        "weights": (3,),
        "relu": ("yes",),
        "framing": ("padded",),
        "flip": (1,),
        "precision": ("float16",),
        "n_components": (0,),
        "max_samples": (True,),
        "seed": (-1,),
    },
    "precomputed": {"length": (0,)},
    "edgeness": {"n_windows": (0,), "seed": (-1,), "thin": (1,)},
    "colour_contrast": {"n_windows": (2.5,), "seed": (True,)},
    "hog": {"contours": ("edges", None), "threshold": (0, 1.5)},
    "lks": {
        "contours": ("none",),
        "blocks": (0,),
        "n_keyshapes": (1.5,),
        "n_nearest": (151,),
        "max_samples": (149,),
        "samples_per_picture": (True,),
        "squared_distance": (1,),
        "thin": ("no",),
        "seed": (-1,),
    },
    "helo": {"cells": (0,), "bins": ("72",), "smooth_cells": (None,)},
    "shelo": {"blocks": (0,), "least_magnitude": (1, -0.1), "vote": ("products",), "root": (2,)},
    "structure_tensor": {"cells": (-3,), "contours": ("grey",)},
    "structure_tensor_words": {"n_windows": (0,)},
    "perceptual_edge_lite": {"contours": ("none",)},
}


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [(n, o, value) for n, options in WRONG.items() for o in options for value in options[o]],
)
def test_wrong_values_of_options_are_named(name, option, value):
    with pytest.raises(InputError, match=re.escape(f"{option}={value!r}")):
        make_extractor(name, {option: value})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"network": "resnet18"}, "option node: network='resnet18' .*'conv1', .*'avgpool'"),
        ({"network": "resnet"}, "no model 'resnet'.*'resnet"),
        ({"network": "cafenet"}, "no model 'cafenet'.*'caffenet'"),
        ({"network": "alexnet:features", "node": "fc6"}, "node='fc6' beside"),
        ({"network": "caffenet"}, "option weights: network='caffenet'"),
        ({"n_components": 9, "max_samples": 9}, "max_samples=9 .*at least 10"),
    ],
)
def test_options_of_networks_that_do_not_fit_are_named(options, words):
    with pytest.raises(InputError, match=words):
        make_extractor("cnn", options)
