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


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("pixels", {"size": 32}, "size=32"),
        ("pixels", {"size": [32]}, r"size=\[32\]"),
        ("pixels", {"size": [0, 4]}, r"size=\[0, 4\]"),
        ("pixels", {"size": [4.0, 4]}, "size="),
        ("pixels", {"size": [True, 4]}, "size="),
        ("pixels", {"crop": [5, 0, 5, 3]}, "right"),
        ("pixels", {"crop": [0, 3, 5, 3]}, "bottom"),
        ("pixels", {"crop": [-1, 0, 5, 3]}, "crop="),
        ("pixels", {"normalisation": "zero_mean"}, "zero_mean_unit_variance"),
        ("pixels", {"color": "grey"}, "'gray'"),
        ("cnn", {"network": "resnet18"}, "option node: network='resnet18' .*'conv1', .*'avgpool'"),
        ("cnn", {"network": "resnet"}, "no model 'resnet'.*'resnet"),
        ("cnn", {"network": "cafenet"}, "no model 'cafenet'.*'caffenet'"),
        ("cnn", {"network": ":fc"}, "network=':fc'.*alexnet:classifier.1"),
        ("cnn", {"network": "alexnet:"}, "network='alexnet:'"),
        ("cnn", {"network": None}, "network=None"),
        ("cnn", {"node": 6}, "node=6"),
        ("cnn", {"node": ""}, "node=''"),
        ("cnn", {"network": "alexnet:features", "node": "fc6"}, "node='fc6' beside"),
        ("cnn", {"weights": 3}, "weights=3"),
        ("cnn", {"network": "caffenet"}, "option weights: network='caffenet'.*[.]caffemodel"),
        ("cnn", {"network": "timm/resnet18"}, "option weights: network='timm/resnet18'"),
        ("cnn", {"relu": "yes"}, "relu='yes'"),
        ("cnn", {"framing": "padded"}, "framing='padded'"),
        ("cnn", {"flip": 1}, "flip=1"),
        ("cnn", {"precision": "float16"}, "precision='float16'"),
        ("cnn", {"n_components": 0}, "n_components=0"),
        ("cnn", {"n_components": 9, "max_samples": 9}, "max_samples=9 .*at least 10"),
        ("cnn", {"max_samples": True}, "max_samples=True"),
        ("cnn", {"seed": -1}, "seed=-1"),
        ("precomputed", {"length": 0}, "length=0"),
        ("edgeness", {"n_windows": 0}, "n_windows=0"),
        ("edgeness", {"seed": -1}, "seed=-1"),
        ("edgeness", {"thin": 1}, "thin=1"),
        ("colour_contrast", {"n_windows": 2.5}, r"n_windows=2\.5"),
        ("colour_contrast", {"seed": True}, "seed=True"),
        ("hog", {"contours": "edges"}, "contours='edges'.*[.]onnx"),
        ("hog", {"contours": None}, "contours=None"),
        ("hog", {"threshold": 0}, "threshold=0 .*above 0"),
        ("hog", {"threshold": 1.5}, "threshold=1.5 .*at most 1"),
        ("lks", {"contours": "none"}, "contours='none'"),
        ("lks", {"blocks": 0}, "blocks=0"),
        ("lks", {"n_keyshapes": 1.5}, r"n_keyshapes=1\.5"),
        ("lks", {"n_nearest": 151}, "n_nearest=151 .*n_keyshapes=150"),
        ("lks", {"max_samples": 149}, "max_samples=149 .*150"),
        ("lks", {"samples_per_picture": True}, "samples_per_picture=True"),
        ("lks", {"squared_distance": 1}, "squared_distance=1"),
        ("lks", {"thin": "no"}, "thin='no'"),
        ("lks", {"seed": -1}, "seed=-1"),
        ("helo", {"cells": 0}, "cells=0"),
        ("helo", {"bins": "72"}, "bins='72'"),
        ("helo", {"smooth_cells": None}, "smooth_cells=None"),
        ("shelo", {"blocks": 0}, "blocks=0"),
        ("shelo", {"least_magnitude": 1}, "least_magnitude=1 .*below 1"),
        ("shelo", {"least_magnitude": -0.1}, "least_magnitude=-0.1"),
        ("shelo", {"vote": "products"}, "vote='products'"),
        ("shelo", {"root": 2}, "root=2"),
        ("structure_tensor", {"cells": -3}, "cells=-3"),
        ("structure_tensor", {"contours": "grey"}, "contours='grey'"),
        ("perceptual_edge_lite", {"contours": "none"}, "contours='none'"),
    ],
)
def test_wrong_values_of_options_are_named(name, options, words):
    with pytest.raises(InputError, match=words):
        make_extractor(name, options)
